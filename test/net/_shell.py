# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ssh and its daemon are to real hosts, argv: `serve SOCKET` on a host, and
FOLDER HOST COMMAND... on another one, where mpirun asks for it. What runs is no
descendant of who asks, as with real hosts, and stays when that ends."""
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

MOST = 1 << 17
STREAMS = [0, 1, 2]


def serve(path):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    while True:
        asked, _ = server.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            command, streams, _, _ = socket.recv_fds(asked, MOST, len(STREAMS))
            done = subprocess.run(
                ["sh", "-c", command.decode()], stdin=streams[0],
                stdout=streams[1], stderr=streams[2], cwd=Path(path).parent)
            try:
                asked.sendall(str(done.returncode).encode())
            except BrokenPipeError:
                pass  # Nobody waits for it any more.
            os._exit(0)
        asked.close()


def ask(folder, host, *words):
    """The shell's exit code; 255, as of ssh, where the host is out of reach."""
    if any((Path(folder) / f"{end}.cut").exists()
           for end in (host, socket.gethostname())):
        print(f"connect to host {host}: No route to host", file=sys.stderr)
        return 255
    link = socket.socket(socket.AF_UNIX)
    link.connect(f"{folder}/{host}.shell")
    socket.send_fds(link, [" ".join(words).encode()], STREAMS)
    code = link.recv(MOST)
    return int(code) % 256 if code else 255


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    sys.exit(ask(*sys.argv[1:]))

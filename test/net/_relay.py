# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A cable that takes its time, argv: a process in the network namespace of the
one end, the names of both interfaces, seconds.

Both ends are TAP devices: the kernel gives them whole frames with checksums,
where between its own interfaces it leaves both for later. Frames are kept until
they are due, and those above MOST dropped, as a full queue of a router does.
Started where the other end is to be; says `ready`.
"""
import collections
import fcntl
import os
import selectors
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 2, 0x1000
CLONE_NEWNET = 0x40000000
MOST = 10000
FRAME = 1 << 16


def openTap(name):
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF,
                struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return tap


def enter(namespace):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def readAll(tap, queue, delay):
    while True:
        try:
            frame = os.read(tap, FRAME)
        except BlockingIOError:
            return
        if len(queue) < MOST:
            queue.append((time.monotonic() + delay, frame))


def writeDue(tap, queue):
    now = time.monotonic()
    while queue and queue[0][0] <= now:
        try:
            os.write(tap, queue.popleft()[1])
        except OSError:
            pass  # The interface is down: it is lost, as on any cable.


def main(pid, near, far, delay):
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    hub = openTap(far)
    enter(os.open(f"/proc/{pid}/ns/net", os.O_RDONLY))
    host = openTap(near)
    enter(here)
    print("ready", flush=True)
    other = {host: hub, hub: host}
    queues = {host: collections.deque(), hub: collections.deque()}
    selector = selectors.DefaultSelector()
    for tap in other:
        selector.register(tap, selectors.EVENT_READ)
    while True:
        due = [queue[0][0] for queue in queues.values() if queue]
        wait = max(0, min(due) - time.monotonic()) if due else None
        for key, _ in selector.select(wait):
            readAll(key.fd, queues[key.fd], delay)
        for tap, queue in queues.items():
            writeDue(other[tap], queue)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tells how the way to another host is, argv: `serve` there, and here WHAT
ADDRESS ARGUMENT, which prints a number:

lost ADDRESS COUNT   the part of so many datagrams that does not come back
rate ADDRESS BYTES   bits per second of so many bytes, by TCP
time ADDRESS         seconds of the fastest of some datagrams, there and back
"""
import select
import socket
import sys
import threading
import time

PORT = 7000
SIZE = 100


def serve():
    echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    echo.bind(("", PORT))
    sink = socket.create_server(("", PORT))
    threading.Thread(target=count, args=(sink,), daemon=True).start()
    print("ready", flush=True)
    while True:
        data, sender = echo.recvfrom(SIZE)
        echo.sendto(data, sender)


def count(sink):
    """Says so when all has come."""
    while True:
        connection, _ = sink.accept()
        left = int(connection.recv(SIZE).decode())
        connection.sendall(b"!")
        while left:
            left -= len(connection.recv(1 << 16))
        connection.sendall(b"!")


def lost(address, number):
    """No faster than a slow link is, so that only what is lost is missing."""
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.connect((address, PORT))
    came = set()

    def take(seconds):
        while select.select([link], [], [], seconds)[0]:
            came.add(link.recv(SIZE))

    for i in range(int(number)):
        link.send(b"%d" % i)
        take(0.0005)
    take(0.5)
    return 1 - len(came) / int(number)


def rate(address, number):
    link = socket.create_connection((address, PORT))
    link.sendall(str(number).encode())
    link.recv(1)
    begin = time.monotonic()
    link.sendall(bytes(int(number)))
    link.recv(1)
    return int(number) * 8 / (time.monotonic() - begin)


def fastest(address):
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.connect((address, PORT))
    link.settimeout(0.5)
    times = []
    for i in range(20):
        begin = time.monotonic()
        link.send(b"%d" % i)
        try:
            while link.recv(SIZE) != b"%d" % i:
                pass
        except TimeoutError:
            continue  # It is lost.
        times.append(time.monotonic() - begin)
    return min(times)


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    if what == "serve":
        serve()
    print({"lost": lost, "rate": rate, "time": fastest}[what](*arguments))

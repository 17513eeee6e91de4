"""A man in the middle of the control channel that dies at a chosen protocol step.

It forwards frames between a real client and a real server until it has seen the step, then ends both
connections in one of three ways: "close" (FIN), "reset" (RST) or "silence" (keeps them open and
passes nothing more, as a stopped process or a cut cable does). To either side it looks like a peer
that died at that step; the RDMA traffic does not pass here and goes on.
"""

import json
import select
import socket
import struct
import threading
import time

STEPS = ["connect", "plan", "endpoints", "ready", "run", "results"]
MANNERS = ["close", "reset", "silence"]


class Frames:
    """Splits a byte stream into frames: 4 bytes of length, then JSON."""

    def __init__(self):
        self._bytes = b""

    def feed(self, data):
        self._bytes += data
        while len(self._bytes) >= 4:
            (length,) = struct.unpack(">I", self._bytes[:4])
            if len(self._bytes) < 4 + length:
                return
            frame = self._bytes[4:4 + length]
            self._bytes = self._bytes[4 + length:]
            yield json.loads(frame)


class DyingProxy:
    """One connection through it; start it, point the client at `port`, then look at `died_at`."""

    def __init__(self, target_port, step, manner):
        self._target = ("127.0.0.1", target_port)
        self._step, self._manner = step, manner
        self._listener = socket.create_server(("0.0.0.0", 0))
        self.port = self._listener.getsockname()[1]
        self.died_at = None  # monotonic time
        self._ready = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self):
        self._stop.set()
        self._thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _reached(self, frame):
        kind = frame.get("type")
        if kind == "barrier" and frame.get("name") == "ready":
            self._ready = True
        return {
            "plan": kind == "plan",
            "endpoints": kind == "endpoint",
            "ready": self._ready,
            "run": self._ready and kind == "heartbeat",
            "results": kind == "result",
        }.get(self._step, False)

    def _die(self, sockets):
        self.died_at = time.monotonic()
        if self._manner == "silence":
            self._stop.wait(30)
        for end in sockets:
            if self._manner == "reset":
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.close()

    def _run(self):
        self._listener.settimeout(20)
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        finally:
            self._listener.close()
        if self._step == "connect":
            self._die([client])
            return
        server = socket.create_connection(self._target)
        frames = {client: Frames(), server: Frames()}
        other = {client: server, server: client}
        while not self._stop.is_set():
            readable, _, _ = select.select(list(frames), [], [], 0.1)
            for source in readable:
                data = source.recv(65536)
                if not data:
                    self._die([client, server]) if self.died_at else None
                    client.close()
                    server.close()
                    return
                # The frame of the step itself is never passed on.
                if any(self._reached(frame) for frame in frames[source].feed(data)):
                    self._die([client, server])
                    return
                other[source].sendall(data)
        client.close()
        server.close()

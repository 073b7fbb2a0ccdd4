"""An HTTP server with a thread for each request answers predictions; a client asks it."""

import json
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

WEIGHTS = np.random.default_rng(0).normal(size=(512, 64))


class Predict(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        x = np.asarray(json.loads(body)["x"])
        answer = json.dumps({"y": np.tanh(x @ WEIGHTS).round(4).tolist()}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Predict)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}/predict"
    rng = np.random.default_rng(1)
    start, requests, total = time.time(), 0, 0.0
    while time.time() - start < float(sys.argv[1]):
        rows = rng.normal(size=(int(rng.integers(1, 16)), 512)).round(3).tolist()
        data = json.dumps({"x": rows}).encode()
        with urllib.request.urlopen(urllib.request.Request(address, data)) as reply:
            total += sum(map(sum, json.load(reply)["y"]))
        requests += 1
        time.sleep(0.04)
    server.shutdown()
    print(f"{requests} requests in {time.time() - start:.1f} s, {total:.0f}")


if __name__ == "__main__":
    main()

"""Starts localstripe on a loopback port that the kernel chooses, and writes that port to the file named by the first argument.

The package's own command binds every interface and saves its objects to one fixed file after every request; two runs on
one machine would overwrite each other. Here the objects live in memory only.
"""

import os
import socket
import sys

from aiohttp import web
from localstripe import resources, server

port_file = sys.argv[1]
resources.Store.dump_to_disk = lambda self: None

listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
listener.bind(("127.0.0.1", 0))
listener.listen()
with open(port_file + ".part", "w", encoding="ascii") as out:
    out.write(str(listener.getsockname()[1]))
os.rename(port_file + ".part", port_file)

web.run_app(server.app, sock=listener, print=None)

"""The loop for agents that speak the Model Context Protocol (https://modelcontextprotocol.io).

Read in this order: `tools` says what there is, `arguments` and `answers` how it looks on the wire, `calls` lets a key
use a tool by the `rights` that it has, `server` speaks the protocol, `http` and `stdio` carry it.

An agent acts and reports; outcomes decide. So there is no tool that writes a lesson or forgets one.
"""

#!/bin/bash
# random-events: see random-events.py
exec python3 /payload/random-events.py "$@"

#!/bin/bash
# long-pass: see long-pass.py
exec python3 /payload/long-pass.py "$@"

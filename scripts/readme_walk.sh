#!/usr/bin/env bash
# Runs the bash blocks of README.md, exactly as they stand there, against a running server (SONDER, default port 8000).
set -euo pipefail
cd "$(dirname "$0")/.."
exec bash -euo pipefail <(sed -n '/^```bash$/,/^```$/{/^```/d;p;}' README.md)

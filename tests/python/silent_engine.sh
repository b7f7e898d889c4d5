#!/bin/sh
# An engine that starts and then answers nothing.
while read -r line; do
    case $line in
        uci) echo "id name Silent" && echo uciok ;;
        isready) echo readyok ;;
    esac
done

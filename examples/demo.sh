#!/bin/sh
# A maintenance window, told in a few commands. Usage: sh examples/demo.sh path/to/egret
set -eu

egret=$(command -v "${1:?"usage: sh examples/demo.sh path/to/egret"}")
case $egret in
  /*) ;;
  *) egret=$PWD/$egret ;;
esac
cd "$(dirname "$0")/.."
here=examples/3-maintenance-drain

headline() {
  printf '\n=== %s\n' "$1"
}

# Shows a command as one would type it, and runs it.
typed() {
  printf '$ %s\n' "$1"
  PATH=$(dirname "$egret"):$PATH sh -c "$1"
}

echo 'worker-a and worker-b go into maintenance. Which egress addresses move, and does each move once?'

headline 'Before: six addresses on four workers'
typed "egret status $here/cluster"

headline 'Why is an address where it is, and why not elsewhere?'
typed "egret explain egressip/billing --ip 192.168.50.101 $here/cluster"

headline 'The old way, one node after the other: an address lands on the node that is next'
typed "egret plan $here/cluster --label node/worker-a k8s.ovn.org/egress-assignable- |
    grep 192.168.50.101 | cut -c-54"

headline 'The change: selectors that say where the addresses may live'
typed "grep -m 1 -A 4 egressNodeSelector $here/change.yaml"

headline 'After, and why: each address moves once, directly; nothing is written, it is only a plan'
typed "egret plan $here/cluster --apply $here/change.yaml"

//go:build plugins

// Package plugins names the CNI plugins that nodes of the tests attach pods with; `build` beside this file makes them.
//
// Version 1.9.1, because 1.10.0 wants a newer Go than can be had everywhere. Never compiled: programs cannot be imported.
// It is what go.mod and go.sum are kept tidy for.
package plugins

import (
	_ "github.com/containernetworking/plugins/plugins/ipam/host-local"
	_ "github.com/containernetworking/plugins/plugins/main/bridge"
)

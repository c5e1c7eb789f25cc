// The control plane that the tests run against: the real etcd, kube-apiserver, kube-controller-manager and kube-proxy in
// one binary, which is whichever of them it is called as. `build` beside this file makes it, with a link for each name.
//
// One binary, because the four share most of what they are made of: it is built in half the time and takes half the
// room. A module of our own, because no registry of packages carries these programs ready made. The versions of etcd and
// of Kubernetes are those of go.mod; each `replace` there is needed because k8s.io/kubernetes asks for version v0.0.0 of
// its parts, which only its own repository has.
//
// Nothing of this is shipped.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
)

var programs = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-proxy":              proxy.NewProxyCommand,
}

func main() {
	name := filepath.Base(os.Args[0])
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	program, known := programs[name]
	if !known {
		fmt.Fprintf(os.Stderr, "this is etcd, kube-apiserver, kube-controller-manager or kube-proxy, not %s\n", name)
		os.Exit(64)
	}
	os.Exit(cli.Run(program()))
}

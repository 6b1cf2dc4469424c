// Command kube is a Kubernetes control plane in one file: etcd, the API server, the controllers, and kubectl.
//
// The first argument names the part. Called by the name kubectl (a symbolic link), it is kubectl.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"

	// Registers the JSON log format and the metrics of the API client and the build, as upstream's own mains do.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

var parts = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kubectl":                 cmd.NewDefaultKubectlCommand,
}

func main() {
	part := filepath.Base(os.Args[0])
	if part != "kubectl" {
		if len(os.Args) < 2 {
			fail("no part named")
		}
		part, os.Args = os.Args[1], os.Args[1:]
	}
	if part == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	build, known := parts[part]
	if !known {
		fail("unknown part " + part)
	}
	os.Exit(cli.Run(build()))
}

func fail(problem string) {
	fmt.Fprintln(os.Stderr, problem+"; usage: kube etcd|kube-apiserver|kube-controller-manager|kubectl [flags]")
	os.Exit(2)
}

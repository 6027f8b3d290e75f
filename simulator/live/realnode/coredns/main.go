// Command coredns is CoreDNS with the plugins that a cluster's DNS has. It is a module of its own, because CoreDNS pins
// other releases of Kubernetes' libraries.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
)

func main() {
	// The order in which plugins see a query.
	dnsserver.Directives = []string{"bind", "errors", "cache", "loadbalance", "kubernetes"}
	coremain.Run()
}

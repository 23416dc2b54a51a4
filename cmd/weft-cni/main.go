// Weft-cni is a CNI plug-in; see package cni.
package main

import (
	"github.com/containernetworking/cni/pkg/skel"

	"github.com/weft-sdn/weft/cni"
)

func main() {
	skel.PluginMainFuncs(cni.Funcs(), cni.Versions, "weft-cni: a switch of its own for each container, under the controller Weft")
}

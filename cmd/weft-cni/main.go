// Weft-cni is a CNI plug-in; see package cni.
package main

import (
	"fmt"
	"os"

	"github.com/containernetworking/cni/pkg/skel"

	"github.com/weft-sdn/weft/cni"
)

func main() {
	if os.Getenv("CNI_COMMAND") == "" { // a person, not a runtime
		fmt.Fprintln(os.Stderr, cni.Usage)
	}
	skel.PluginMainFuncs(cni.Funcs(), cni.Versions, "") // without a command it fails, as the specification says
}

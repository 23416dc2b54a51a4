// Command weft is the controller and everything around it.
package main

import (
	"os"

	"github.com/weft-sdn/weft/cmd/weft/command"
)

func main() { os.Exit(command.Main(os.Args[1:], os.Stdout, os.Stderr)) }

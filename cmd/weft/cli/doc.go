// Package cli is what the subcommands of weft share: how they reach a running
// controller, print what it answers, and say what is wrong with a command line.
//
// Only cmd/weft and its packages import it.
package cli

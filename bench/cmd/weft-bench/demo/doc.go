// Package demo is the command weft demo: the controller at work on a network of real
// switches, step by step.
//
// Only cmd/weft-bench and its packages import it.
package demo

// Package profiler is the command weft profile: what services take from a running
// controller.
//
// Only cmd/weft and its packages import it.
package profiler

// Package bench is the commands weft bench: what a controller does, measured beside other
// controllers and floors, on fake switches and on labs.
//
// Only cmd/weft-bench and its packages import it.
package bench

// Package trace is the command weft trace: a packet's way through the flow tables.
//
// Only cmd/weft and its packages import it.
package trace

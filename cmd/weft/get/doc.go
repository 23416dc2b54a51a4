// Package get is the commands weft get, path, explain and events: what the controller
// knows, for people and programs.
//
// Only cmd/weft and its packages import it.
package get

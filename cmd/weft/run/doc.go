// Package run is the commands that run the controller: weft up, weft worker and what
// they are made of.
//
// Only cmd/weft and its packages import it.
package run

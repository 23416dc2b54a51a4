// Package store is the commands weft store: the durable state, listed, saved and mended.
//
// Only cmd/weft and its packages import it.
package store

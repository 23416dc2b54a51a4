// Package loom is the controller's page in the browser: the design of networks,
// the live network, its services, experiments and changes. Its source is Svelte
// and TypeScript; make build writes what browsers get to built, which is
// compiled in.
package loom

import (
	"embed"
	"io/fs"
)

// built holds what vite has built; without node it holds nothing but .gitignore.
//
//go:embed all:built
var built embed.FS

// Files returns what browsers get, index.html among it; false if Loom was not
// built into this program.
func Files() (fs.FS, bool) {
	files, err := fs.Sub(built, "built")
	if err != nil {
		return nil, false
	}
	_, err = fs.Stat(files, "index.html")
	return files, err == nil
}

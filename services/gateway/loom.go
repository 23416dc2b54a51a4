package gateway

import (
	"crypto/rand"
	"io"
	"io/fs"
	"net/http"
	"strings"
)

// pagePolicy is the Content-Security-Policy of Loom: scripts, styles and
// connections from here alone. Behind it stands the nonce of a page, by which the
// style elements count that its editor and terminals make. Style attributes count
// without: terminals write one for each colour that is set by a program, and
// browsers themselves where text is typed.
const pagePolicy = "default-src 'none'; script-src 'self'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src-attr 'unsafe-inline'; style-src 'self'"

// nonceMark is where Loom's page has its nonce.
const nonceMark = "{{nonce}}"

// pagePrefix begins the paths of Loom's parts; their names change with what is in
// them.
const pagePrefix = "/assets/"

// pages serves Loom's files; false says that there are none.
func pages(mux *http.ServeMux, files fs.FS, built bool) {
	if !built {
		mux.HandleFunc("GET /{$}", frontPage)
		return
	}
	server := http.FileServerFS(files)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		text, err := fs.ReadFile(files, "index.html")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		nonce := rand.Text()
		w.Header().Set("Content-Security-Policy", pagePolicy+" 'nonce-"+nonce+"'")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, strings.ReplaceAll(string(text), nonceMark, nonce))
	})
	mux.HandleFunc("GET "+pagePrefix, func(w http.ResponseWriter, r *http.Request) {
		if info, err := fs.Stat(files, strings.TrimPrefix(r.URL.Path, "/")); err != nil || info.IsDir() {
			http.Error(w, "this part of the page is of another version: load the page again", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Security-Policy", pagePolicy)
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		server.ServeHTTP(w, r)
	})
}

// frontPage answers where Loom was not built in.
func frontPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	io.WriteString(w, page)
}

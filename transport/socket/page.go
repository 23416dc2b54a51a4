package socket

import (
	"fmt"
	"net/http"

	"github.com/weft-sdn/weft/internal/localsocket"
)

// FromPage reports a request that a browser may have been made to send by a
// page of the web: no process of Weft names an Origin and, where there is no
// TLS, the Host is this machine (against DNS rebinding).
func FromPage(r *http.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" {
		return fmt.Errorf("requests from pages, as of %.80q, are refused", origin)
	}
	if r.TLS == nil && !localsocket.Loopback(r.Host) {
		return fmt.Errorf("host %.80q is not this machine: use 127.0.0.1 or localhost; other machines need certificates", r.Host)
	}
	return nil
}

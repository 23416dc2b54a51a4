package scp

import (
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/weft-sdn/weft/sbi"
)

// tokenPath is that of requests for access tokens (TS 29.510, 5.4).
const tokenPath = "/oauth2/token"

// token passes a request for an access token on to the NRF. One for the instance by which
// consumers know an end point asks for its type, as the NRF knows no such instance.
func (f *front) token(w http.ResponseWriter, r *http.Request, client netip.Addr) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodies.Octets))
	if err != nil {
		f.proxy.count.malformed.Add(1)
		sbi.WriteProblem(w, unreachable(err))
		return
	}
	if other := tokenFor(f.proxy, body, client); other != nil {
		body = other
	}
	f.proxy.count.passed.Add(1)
	keepBody(r, body)
	f.toNRF(w, r)
}

// tokenFor returns the request for a token that is good at every producer of the end point
// which a request, a form, names; nil if it names none, or if it is not known of which type
// the consumer is, which the NRF then has to know.
func tokenFor(p *proxy, body []byte, client netip.Addr) []byte {
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form["targetNfInstanceId"]) != 1 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.endpointByID(form.Get("targetNfInstanceId"))
	if e == nil {
		return nil
	}
	if form.Get("nfType") == "" {
		consumer := p.book[strings.ToLower(form.Get("nfInstanceId"))]
		if consumer == nil || !p.owns(consumer, client) {
			return nil
		}
		form.Set("nfType", string(consumer.profile.NFType))
	}
	form.Del("targetNfInstanceId")
	form.Set("targetNfType", string(e.Group.Type))
	return []byte(form.Encode())
}

package sbi

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Headers of indirect communication (TS 29.500, 5.2.3.2 and 5.2.3.3), as
// http.Header has them.
const (
	TargetAPIRoot   = "3gpp-Sbi-Target-Apiroot"
	RoutingBinding  = "3gpp-Sbi-Routing-Binding"
	BindingHeader   = "3gpp-Sbi-Binding"
	ProducerID      = "3gpp-Sbi-Producer-Id"
	CallbackHeader  = "3gpp-Sbi-Callback"
	MaxForwardHops  = "3gpp-Sbi-Max-Forward-Hops"
	MaxRspTime      = "3gpp-Sbi-Max-Rsp-Time"
	discoveryPrefix = "3gpp-Sbi-Discovery-"
)

// header returns a 400 that names a header.
func header(cause Cause, name, reason string) *ProblemDetails {
	return invalid(cause, "header "+name, reason)
}

// one returns the value of a header that may occur once.
func one(h http.Header, name string) (string, error) {
	switch v := h[name]; {
	case len(v) == 0:
		return "", nil
	case len(v) > 1:
		return "", header(MandatoryMemberIncorrect, name, "is there more than once")
	case len(v[0]) > mostText:
		return "", header(MandatoryMemberIncorrect, name, "is too long")
	default:
		return strings.TrimSpace(v[0]), nil
	}
}

// DelegatedQuery returns the discovery that a request delegates to the SCP, as the
// parameters of a query; none if it delegates none. Percent-encoded values are decoded.
// target-nf-instance-id may have the form of 3gpp-Sbi-Producer-Id.
func DelegatedQuery(h http.Header) (url.Values, error) {
	values := url.Values{}
	for name, v := range h {
		if len(name) <= len(discoveryPrefix) || !strings.EqualFold(name[:len(discoveryPrefix)], discoveryPrefix) {
			continue
		}
		if len(v) > 1 {
			return nil, header(OptionalParameterIncorrect, name, "is there more than once")
		}
		text, err := url.PathUnescape(v[0])
		if err != nil {
			text = v[0]
		}
		parameter := strings.ToLower(name[len(discoveryPrefix):])
		if parameter == "target-nf-instance-id" && strings.Contains(text, "=") {
			text = readParams(text)["nfinst"]
		}
		values.Set(parameter, text)
	}
	return values, nil
}

// WithoutDelegation removes the headers that are for the SCP alone.
func WithoutDelegation(h http.Header) {
	delete(h, TargetAPIRoot)
	for name := range h {
		if len(name) > len(discoveryPrefix) && strings.EqualFold(name[:len(discoveryPrefix)], discoveryPrefix) {
			delete(h, name)
		}
	}
}

// An APIRoot is where an API is reached: a scheme, an authority and a prefix of the
// paths.
type APIRoot struct {
	Scheme string
	Host   string         // a name; empty with an address
	Addr   netip.AddrPort // an address; its port only with a name
	Prefix string
}

// ParseAPIRoot reads the header 3gpp-Sbi-Target-apiRoot. Without that header, the root
// has no scheme. The error is a ProblemDetails.
func ParseAPIRoot(h http.Header) (r APIRoot, err error) {
	text, err := one(h, TargetAPIRoot)
	if err != nil || text == "" {
		return r, err
	}
	bad := func(reason string) (APIRoot, error) {
		return APIRoot{}, header(MandatoryMemberIncorrect, TargetAPIRoot, reason)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "":
		return bad("want http://AUTHORITY or https://AUTHORITY, and a prefix")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.RawPath != "":
		return bad("has more than an authority and a plain prefix")
	case strings.Contains(u.Path, "//") || strings.Contains(u.Path, "/."):
		return bad("has a prefix of more than one spelling")
	}
	port, err := PortOf(u)
	if err != nil || port == 0 {
		return bad("want a port of 1 to 65535")
	}
	r = APIRoot{Scheme: u.Scheme, Prefix: strings.TrimSuffix(u.Path, "/")}
	a, err := netip.ParseAddr(u.Hostname())
	switch {
	case err == nil && a.Zone() != "":
		return bad("want an address without a zone")
	case err == nil:
		r.Addr = netip.AddrPortFrom(a.Unmap(), port)
	case u.Hostname() == "" || len(u.Hostname()) > 253:
		return bad("want an address or a name")
	default:
		r.Host, r.Addr = strings.ToLower(u.Hostname()), netip.AddrPortFrom(netip.Addr{}, port)
	}
	return r, nil
}

// A Binding names the producers to which a consumer is bound (TS 29.500, 6.12): an
// instance, or a set of them.
type Binding struct {
	Level       string // nf-instance, nf-set, nfservice-instance or nfservice-set
	Instance    string
	Set         string
	Service     string // an instance of a service
	ServiceSet  string
	ServiceName string
}

// ParseBinding reads the header 3gpp-Sbi-Routing-Binding. Without that header, the
// binding has no level. The error is a ProblemDetails.
func ParseBinding(h http.Header) (b Binding, err error) {
	text, err := one(h, RoutingBinding)
	if err != nil || text == "" {
		return b, err
	}
	p := readParams(text)
	b = Binding{Level: p["bl"], Instance: p["nfinst"], Set: p["nfset"], Service: p["nfservinst"], ServiceSet: p["nfserviceset"], ServiceName: p["servname"]}
	switch {
	case b.Level != "nf-instance" && b.Level != "nf-set" && b.Level != "nfservice-instance" && b.Level != "nfservice-set":
		return b, header(MandatoryMemberIncorrect, RoutingBinding, "want bl=nf-instance, nf-set, nfservice-instance or nfservice-set")
	case b.Instance == "" && b.Set == "" && b.ServiceSet == "":
		return b, header(MandatoryMemberIncorrect, RoutingBinding, "names no instance and no set")
	case b.Instance != "" && !ValidInstanceID(b.Instance):
		return b, header(MandatoryMemberIncorrect, RoutingBinding, "nfinst: want a UUID")
	}
	return b, nil
}

// readParams reads NAME=VALUE; NAME=VALUE. Of several values of a name it takes the
// first.
func readParams(text string) map[string]string {
	all := map[string]string{}
	for item := range strings.SplitSeq(text, ";") {
		name, value, ok := strings.Cut(strings.TrimSpace(item), "=")
		name = strings.ToLower(name)
		if _, there := all[name]; !ok || there {
			continue
		}
		if plain, err := url.PathUnescape(value); err == nil {
			value = plain
		}
		all[name] = strings.Trim(value, `"`)
	}
	return all
}

// Hop prepares the headers of a request that the SCP called name passes on: it adds the
// SCP to Via and decrements 3gpp-Sbi-Max-Forward-Hops. The error is a ProblemDetails:
// the SCP is in Via already, or no hop is left.
func Hop(h http.Header, version, name string) error {
	for _, v := range h["Via"] {
		for item := range strings.SplitSeq(v, ",") {
			if f := strings.Fields(item); len(f) > 1 && strings.EqualFold(f[1], name) {
				return Problem(http.StatusBadRequest, LoopDetected, "the request has been here before")
			}
		}
	}
	text, err := one(h, MaxForwardHops)
	if err != nil {
		return err
	}
	if number, of, _ := strings.Cut(text, ";"); text != "" {
		n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 8)
		if kind := readParams(of)["nodetype"]; kind == "" || strings.EqualFold(kind, "scp") {
			switch {
			case err != nil:
				return header(OptionalMemberIncorrect, MaxForwardHops, "want a number of 0 to 255")
			case n == 0:
				return Problem(http.StatusBadGateway, HopsReached, "no further SCP may pass the request on")
			}
			h.Set(MaxForwardHops, strconv.FormatUint(n-1, 10)+strings.TrimRight(";"+of, ";"))
		}
	}
	h.Add("Via", version+" "+name)
	return nil
}

// ResponseTime returns how long the client of a request waits for the answer: the time
// in 3gpp-Sbi-Max-Rsp-Time, at most most, or otherwise without that header.
func ResponseTime(h http.Header, otherwise, most time.Duration) time.Duration {
	n, err := strconv.ParseUint(h.Get(MaxRspTime), 10, 32)
	if err != nil || n == 0 {
		return otherwise
	}
	return min(time.Duration(n)*time.Millisecond, most)
}

// ClientType returns the NF type that a client gives in its User-Agent, such as AMF in
// AMF-amf1; empty if it gives none.
func ClientType(h http.Header) NFType {
	of, _, _ := strings.Cut(h.Get("User-Agent"), "-")
	if of, _, _ = strings.Cut(of, "/"); !typeForm.MatchString(of) || of != strings.ToUpper(of) {
		return ""
	}
	return NFType(of)
}

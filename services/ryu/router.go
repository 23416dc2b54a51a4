package ryu

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/weft-sdn/weft/internal/localsocket"
	"github.com/weft-sdn/weft/internal/northbound"
)

// changes reports whether the route may change something: ofctl_rest also has
// some queries by POST.
func (x *route) changes() bool {
	question := strings.HasPrefix(x.path, "/stats/flow/") || strings.HasPrefix(x.path, "/stats/flowdesc/") || strings.HasPrefix(x.path, "/stats/aggregateflow/")
	return x.method != http.MethodGet && !question
}

// router returns the handler of all requests. It answers 404 if no route matches,
// even if another method would match, as Ryu does.
func (s *server) router() http.Handler {
	var list []route
	for _, more := range [][]route{s.statsRoutes(), s.commands.commandRoutes(), s.topologyRoutes(), s.confRoutes(), s.firewallRoutes(), s.gatewayRoutes(), s.qos.routes()} {
		list = append(list, more...)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visit, err := northbound.Enter(r.Context(), s.owners.rank(r))
		if err != nil {
			s.fail(w, r, &failure{429, err.Error()})
			return
		}
		defer visit.End()
		w, r = visit.Writer(w), visit.Request(r)
		if err := s.guard(r); err != nil {
			s.fail(w, r, err)
			return
		}
		parts := strings.Split(r.URL.EscapedPath(), "/")
		if r.URL.Path == eventsPath {
			if _, err := s.owners.check(r, false); err != nil {
				s.fail(w, r, err)
				return
			}
			defer northbound.Follow(r.Context())()
			s.stream.ServeHTTP(w, r, s.owners.rank(r))
			return
		}
		for i := range list {
			x := &list[i]
			if x.method != r.Method {
				continue
			}
			if args, ok := x.match(parts); ok {
				s.answer(w, r, x, args)
				return
			}
		}
		s.fail(w, r, &failure{404, fmt.Sprintf("there is no %.80q", r.Method+" "+r.URL.Path)})
	})
}

// match reports whether the route matches a path, and returns the values of its
// names.
func (x *route) match(parts []string) (map[string]string, bool) {
	want := strings.Split(x.path, "/")
	if len(want) != len(parts) {
		return nil, false
	}
	args := map[string]string{}
	for i, w := range want {
		part, err := url.PathUnescape(parts[i])
		if err != nil {
			return nil, false
		}
		switch {
		case strings.HasPrefix(w, "{"):
			if part == "" {
				return nil, false
			}
			args[strings.Trim(w, "{}")] = part
		case w != part:
			return nil, false
		}
	}
	return args, true
}

// guard refuses requests that a browser makes for a foreign page: from another
// origin, or by a name that somebody has pointed to this machine.
func (s *server) guard(r *http.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
			return &failure{403, fmt.Sprintf("a page of %.80q may not control the network", origin)}
		}
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil && !s.config.Exposed && !localsocket.Loopback(host) {
		return &failure{403, fmt.Sprintf("host %.80q: want an address or localhost", host)}
	}
	return nil
}

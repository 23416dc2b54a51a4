package ryu

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// topologyRoutes are the routes of rest_topology.
func (s *switches) topologyRoutes() []route {
	var list []route
	for name, of := range map[string]func(*flow.DPID) any{
		"switches": func(only *flow.DPID) any { return s.view().switchList(only) },
		"links":    func(only *flow.DPID) any { return s.view().linkList(only) },
		"hosts":    func(only *flow.DPID) any { return s.view().hostList(only) },
	} {
		list = append(list,
			route{"GET", "/v1.0/topology/" + name, func(context.Context, *request) (any, error) { return of(nil), nil }},
			route{"GET", "/v1.0/topology/" + name + "/{dpid}", func(_ context.Context, r *request) (any, error) {
				sw, err := sixteen(r)
				if err != nil {
					return nil, err
				}
				return of(&sw), nil
			}})
	}
	return list
}

// sixteen reads the switch of a path, which is 16 lower-case hex digits there.
func sixteen(r *request) (flow.DPID, error) {
	text := r.args["dpid"]
	n, err := strconv.ParseUint(text, 16, 64)
	if err != nil || len(text) != 16 || strings.Trim(text, "0123456789abcdef") != "" {
		return 0, &failure{404, fmt.Sprintf("there is no %.80q: want the switch as 16 hex digits, such as 0000000000000001", r.path)}
	}
	return flow.DPID(n), nil
}

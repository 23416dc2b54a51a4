package ryu

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/weft-sdn/weft/flow"
)

// eachSwitch turns a handler of rest_firewall or rest_qos (what) for one switch
// into one for the switch of the path, or for all. It holds mu meanwhile.
func (s *switches) eachSwitch(what string, mu *sync.Mutex, h func(context.Context, *request, flow.DPID) (any, error)) handler {
	return func(ctx context.Context, r *request) (any, error) {
		list, err := s.pathSwitches(r, what)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		answers := []any{}
		for _, sw := range list {
			a, err := h(ctx, r, sw)
			if err != nil {
				return nil, err
			}
			answers = append(answers, a)
		}
		return answers, nil
	}
}

// pathSwitches returns the switches of a path: one by its 16 hex digits, or all;
// a path without a switch means all.
func (s *switches) pathSwitches(r *request, what string) ([]flow.DPID, error) {
	name, ok := r.args["dpid"]
	all := !ok || name == "all"
	var sw flow.DPID
	if !all {
		var err error
		if sw, err = sixteen(r); err != nil {
			return nil, err
		}
	}
	if v, ok := r.args["vlan"]; ok && v != "all" && (len(v) > 4 || strings.Trim(v, "0123456789") != "") {
		return nil, &failure{404, fmt.Sprintf("there is no %.80q: want a VLAN, 2 to 4094, or all", r.path)}
	}
	if len(r.body) > 0 && !json.Valid(r.body) {
		return nil, bad("body: want JSON")
	}
	list := s.view().connected()
	switch {
	case len(list) == 0:
		return nil, bad("%s sw is not connected.", what)
	case !all && !slices.Contains(list, sw):
		return nil, bad("%s sw is not connected. : switchID=%s", what, name)
	case !all:
		return []flow.DPID{sw}, nil
	}
	return list, nil
}

// commandResult is an answer of rest_firewall and rest_qos.
type commandResult struct {
	Result  string  `json:"result"`
	Details string  `json:"details"`
	VLAN    *uint16 `json:"vlan_id,omitempty"`
}

// resultOf returns the answer of one switch.
func resultOf(sw flow.DPID, result any) any {
	return map[string]any{"switch_id": sw.String(), "command_result": result}
}

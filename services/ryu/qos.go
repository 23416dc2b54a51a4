package ryu

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weft-sdn/weft/flow"
)

// qos is rest_qos: entries and meters of switches, queues of the service of quality of
// service, and the numbers of rules. These are not stored: after a restart, numbering
// continues from the switches' entries.
type qos struct {
	*commands
	queue queueService
	conf  *conf

	mu   sync.Mutex                      // guards last, and is held during a change
	last map[flow.DPID]map[uint16]uint32 // the last numbers given to rules, by switch and VLAN
}

// routes returns the routes of rest_qos. Its rules are entries of the table for
// quality of service, and its meters those of the switch: they belong to their
// sender, as those of ofctl_rest do.
func (q *qos) routes() []route {
	of := func(h func(context.Context, *request, flow.DPID) (any, error)) handler {
		return q.eachSwitch("qos", &q.mu, h)
	}
	routes := []route{
		{"GET", "/qos/queue/status/{dpid}", of(q.answer(q.queues))},
		{"GET", "/qos/queue/{dpid}", of(q.listQueues)},
		{"POST", "/qos/queue/{dpid}", of(q.setQueues)},
		{"DELETE", "/qos/queue/{dpid}", of(q.deleteQueues)},
		{"GET", "/qos/meter/{dpid}", of(q.answer(q.meters))},
		{"POST", "/qos/meter/{dpid}", of(q.setMeter)},
		{"DELETE", "/qos/meter/{dpid}", of(q.deleteMeter)},
	}
	for _, path := range []string{"/qos/rules/{dpid}", "/qos/rules/{dpid}/{vlan}"} {
		routes = append(routes, route{"GET", path, of(q.rules)}, route{"POST", path, of(q.addRule)}, route{"DELETE", path, of(q.deleteRule)})
	}
	return routes
}

// The methods below are called with mu held.

// answer answers what ofctl_rest answers.
func (q *qos) answer(ask func(context.Context, *question) (any, error)) func(context.Context, *request, flow.DPID) (any, error) {
	return func(ctx context.Context, r *request, sw flow.DPID) (any, error) {
		v, err := ask(ctx, &question{r, sw, dict{}})
		if err != nil {
			return nil, err
		}
		return resultOf(sw, map[string]any{strconv.FormatUint(uint64(sw), 10): v}), nil
	}
}

func (q *qos) setMeter(ctx context.Context, r *request, sw flow.DPID) (any, error) {
	result, err := q.meter(ctx, r, sw, "add", "added")
	return resultOf(sw, []any{result}), err
}

func (q *qos) deleteMeter(ctx context.Context, r *request, sw flow.DPID) (any, error) {
	result, err := q.meter(ctx, r, sw, "delete", "deleted")
	return resultOf(sw, result), err
}

func (q *qos) meter(ctx context.Context, r *request, sw flow.DPID, command, done string) (any, error) {
	body, err := r.dict()
	if err != nil {
		return nil, err
	}
	id := numberText(body["meter_id"])
	if _, err := readMeter(body); err != nil || id == "" {
		return nil, bad("Invalid meter parameter. : meter_id=%.80s, %v", id, err)
	}
	r.args["cmd"] = command
	if err := q.meterEntry(ctx, &order{r, sw, body}); err != nil {
		return nil, err
	}
	return commandResult{Result: "success", Details: fmt.Sprintf("Meter %s. : Meter ID=%s", done, id)}, nil
}

// qosRule is a rule as the switch has it.
type qosRule struct {
	flow.Entry
	number uint32
	path   uint16 // the VLAN of the path by which it was added
	vlan   string // that it is about, as Ryu shows it; empty: none
}

// list returns the rules of a switch.
func (q *qos) list(ctx context.Context, sw flow.DPID) ([]qosRule, error) {
	entries, err := q.affected(ctx, sw, &flow.Mod{Command: flow.Modify, Entry: flow.Entry{Table: flow.TableQoS}}, false)
	if err != nil {
		return nil, err
	}
	var list []qosRule
	for _, e := range entries {
		if e.Cookie&ownMark != ownCookie && e.Priority > 0 {
			vlan, _ := showMatch(&e.Match)["dl_vlan"].(string)
			list = append(list, qosRule{e, uint32(e.Cookie), uint16(e.Cookie >> 32), vlan})
		}
	}
	slices.SortStableFunc(list, func(a, b qosRule) int { return int(b.Priority) - int(a.Priority) })
	return list, nil
}

// show returns a rule in Ryu's names.
func (x *qosRule) show() map[string]any {
	actions := []any{}
	for _, a := range showActions(&x.Entry) {
		text, _ := a.(string)
		for _, k := range [][2]string{{"mark", "SET_FIELD: {ip_dscp:"}, {"meter", "METER:"}, {"queue", "SET_QUEUE:"}} {
			if v, ok := strings.CutPrefix(text, k[1]); ok {
				actions = append(actions, map[string]any{k[0]: strings.TrimSuffix(v, "}")})
			}
		}
	}
	out := map[string]any{"qos_id": x.number, "priority": x.Priority, "actions": actions}
	showNamedMatch(&x.Match, out)
	return out
}

func (q *qos) rules(ctx context.Context, r *request, sw flow.DPID) (any, error) {
	vlan, all, err := vlanOf(r)
	if err != nil {
		return nil, err
	}
	list, err := q.list(ctx, sw)
	if err != nil {
		return nil, err
	}
	of := map[string][]any{}
	for _, x := range list {
		if all || x.vlan == vlanText(vlan) {
			of[x.vlan] = append(of[x.vlan], x.show())
		}
	}
	groups := []any{}
	for _, v := range slices.Sorted(maps.Keys(of)) {
		group := map[string]any{"qos": of[v]}
		if v != "" {
			group["vlan_id"] = v
		}
		groups = append(groups, group)
	}
	return resultOf(sw, groups), nil
}

func (q *qos) addRule(ctx context.Context, r *request, sw flow.DPID) (any, error) {
	vlan, all, err := vlanOf(r)
	if err != nil {
		return nil, err
	}
	body, err := r.dict()
	if err != nil {
		return nil, err
	}
	list, err := q.list(ctx, sw)
	if err != nil {
		return nil, err
	}
	vlans, last := map[uint16]bool{vlan: true}, maps.Clone(q.last[sw])
	if last == nil {
		last = map[uint16]uint32{}
	}
	for _, x := range list {
		if x.path <= vlanMax {
			last[x.path] = max(last[x.path], x.number)
			vlans[x.path] = vlans[x.path] || all
		}
	}
	results := []commandResult{}
	for v := range vlans {
		if !vlans[v] {
			delete(vlans, v)
		}
	}
	for _, v := range slices.Sorted(maps.Keys(vlans)) {
		m, err := readQosRule(body, v)
		if err != nil {
			return nil, err
		}
		last[v]++
		m.Entry.Cookie = flow.Cookie(v)<<32 | flow.Cookie(last[v])
		if err := q.modifyFlows(ctx, r, sw, m); err != nil {
			return nil, err
		}
		result := commandResult{Result: "success", Details: fmt.Sprintf("QoS added. : qos_id=%d", last[v])}
		if v != vlanNone {
			result.VLAN = &v
		}
		results = append(results, result)
	}
	q.last[sw] = last
	return resultOf(sw, results), nil
}

// readQosRule reads the body of a rule for a VLAN.
func readQosRule(body dict, vlan uint16) (flow.Mod, error) {
	m := flow.Mod{Command: flow.Add, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny}
	m.Entry.Table = flow.TableQoS
	priority, err := rulePriority(body, ruleLeast, 65534)
	if err != nil {
		return m, err
	}
	m.Entry.Priority = uint16(priority)
	match, err := body.dict("match")
	if err != nil {
		return m, err
	}
	if match == nil {
		return m, bad("match: missing; want a dictionary, such as {\"nw_dst\": \"10.0.0.1\"}")
	}
	in := maps.Clone(match)
	if vlan != vlanNone {
		in["dl_vlan"] = vlanText(vlan)
	}
	if m.Entry.Match, err = readNamedMatch(in, "ip_dscp"); err != nil {
		return m, err
	}
	actions, err := body.dict("actions")
	if err != nil {
		return m, err
	}
	if body["actions"] == nil {
		actions = dict{"queue": "0"}
	}
	var list []any
	for _, key := range slices.Sorted(maps.Keys(actions)) {
		v := actions[key]
		switch key {
		case "mark":
			list = append(list, dict{"type": "SET_FIELD", "field": "ip_dscp", "value": v})
		case "meter":
			list = append(list, dict{"type": "METER", "meter_id": v})
		case "queue":
			list = append(list, dict{"type": "SET_QUEUE", "queue_id": v})
		default:
			return m, bad("Invalid rule parameter. : actions: %.40q: want mark, meter or queue", key)
		}
	}
	list = append(list, dict{"type": "GOTO_TABLE", "table_id": strconv.Itoa(int(flow.TableTranslate))})
	if err := readActions(list, &m.Entry); err != nil {
		return m, bad("Invalid rule parameter. : %v", err)
	}
	return m, nil
}

func (q *qos) deleteRule(ctx context.Context, r *request, sw flow.DPID) (any, error) {
	vlan, all, err := vlanOf(r)
	if err != nil {
		return nil, err
	}
	body, err := r.dict()
	if err != nil {
		return nil, err
	}
	number := numberText(body["qos_id"])
	want, err := strconv.ParseUint(number, 10, 63)
	if number != "all" && err != nil {
		return nil, bad("Invalid qos id.")
	}
	list, err := q.list(ctx, sw)
	if err != nil {
		return nil, err
	}
	ids := map[string][]string{}
	var mods []flow.Mod
	for _, x := range list {
		if (number == "all" || want == uint64(x.number)) && (all || x.vlan == vlanText(vlan)) {
			ids[x.vlan] = append(ids[x.vlan], strconv.FormatUint(uint64(x.number), 10))
			mods = append(mods, flow.Mod{
				Command: flow.DeleteStrict, CookieMask: allBits, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny,
				Entry: flow.Entry{Table: x.Table, Priority: x.Priority, Match: x.Match, Cookie: x.Cookie},
			})
		}
	}
	if len(mods) == 0 {
		details := "QoS rule is not exist."
		if number != "all" {
			details += " : QoS ID=" + strconv.FormatUint(want, 10)
		}
		return resultOf(sw, commandResult{Result: "failure", Details: details}), nil
	}
	if err := q.applyMods(ctx, r, sw, mods); err != nil {
		return nil, err
	}
	results := []any{}
	for _, v := range slices.Sorted(maps.Keys(ids)) {
		result := map[string]any{"result": "success", "details": " deleted. : QoS ID=" + strings.Join(ids[v], ",")}
		if v != "" {
			result["vlan_id"] = v
		}
		results = append(results, result)
	}
	return resultOf(sw, results), nil
}

package ryu

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// queueService is what the handlers of rest_qos need of the service of quality
// of service.
type queueService interface {
	setQueues(context.Context, *api.QosSetQueuesRequest) (*api.QosQueues, error)
	deleteQueues(context.Context, *api.QosDeleteQueuesRequest) (*api.QosDeleteQueuesResponse, error)
	listQueues(context.Context, *api.QosListQueuesRequest) (*api.QosListQueuesResponse, error)
}

// queueConfig is the queues of a port as Ryu shows them: by number, "config",
// and "max-rate" or "min-rate" in bits per second.
type queueConfig map[string]map[string]map[string]string

// hasDatabase reports whether rest_conf_switch has given the switch a database,
// without which Ryu makes no queues. The configuration of the service of quality
// of service (qos.ovsdb) says where the database is.
func (q *qos) hasDatabase(sw flow.DPID) bool {
	q.conf.mu.Lock()
	defer q.conf.mu.Unlock()
	var address string
	return json.Unmarshal(q.conf.values[sw]["ovsdb_addr"], &address) == nil && address != ""
}

// listQueues answers with the wanted queues of a switch's ports.
func (q *qos) listQueues(ctx context.Context, _ *request, sw flow.DPID) (any, error) {
	none := resultOf(sw, commandResult{Result: "failure", Details: "Queue is not exists."})
	if !q.hasDatabase(sw) {
		return none, nil
	}
	resp, err := q.queue.listQueues(ctx, &api.QosListQueuesRequest{})
	if err != nil {
		return nil, err
	}
	names := q.view().portNames(sw)
	list := map[string]queueConfig{}
	for _, p := range resp.Ports {
		if p.Dpid != sw.String() || p.State == "removing" {
			continue
		}
		name, ok := names[p.Port]
		if !ok {
			name = strconv.Itoa(int(p.Port))
		}
		list[name] = showQueues(p.Queues)
	}
	if len(list) == 0 {
		return none, nil
	}
	return resultOf(sw, map[string]any{"result": "success", "details": list}), nil
}

func showQueues(list []*api.QosQueue) queueConfig {
	out := queueConfig{}
	for _, q := range list {
		config := map[string]string{}
		for name, kbps := range map[string]uint32{"max-rate": q.MaxKbps, "min-rate": q.MinKbps} {
			if kbps != 0 {
				config[name] = strconv.FormatUint(uint64(kbps)*1000, 10)
			}
		}
		out[strconv.Itoa(int(q.Id))] = map[string]map[string]string{"config": config}
	}
	return out
}

// setQueues gives queues to a port of a switch, or to all.
func (q *qos) setQueues(ctx context.Context, r *request, sw flow.DPID) (any, error) {
	if !q.hasDatabase(sw) {
		return resultOf(sw, commandResult{Result: "failure", Details: "ovs_bridge is not exists"}), nil
	}
	body, err := r.dict()
	if err != nil {
		return nil, err
	}
	names := q.view().portNames(sw)
	if v, ok := body["port_name"]; ok && v != nil {
		name, _ := v.(string)
		maps.DeleteFunc(names, func(_ uint32, n string) bool { return n != name })
		if len(names) == 0 {
			return nil, bad("%.40s port is not exists", name)
		}
	}
	queues, most, err := readQueues(body)
	if err != nil {
		return nil, err
	}
	for _, port := range slices.Sorted(maps.Keys(names)) {
		got, err := q.queue.setQueues(ctx, &api.QosSetQueuesRequest{Queues: &api.QosQueues{Dpid: sw.String(), Port: port, MaxKbps: most, Queues: queues}})
		if err != nil {
			return nil, err
		}
		if got.State != "configured" {
			return nil, bad("queues of port %s are %s: %s", names[port], got.State, got.Reason)
		}
	}
	return resultOf(sw, map[string]any{"result": "success", "details": showQueues(queues)}), nil
}

// readQueues reads queues, and the highest rate of the port.
func readQueues(body dict) (list []*api.QosQueue, most uint32, err error) {
	kind, err := body.text("type", "linux-htb")
	if err != nil {
		return nil, 0, err
	}
	if kind != "linux-htb" {
		return nil, 0, bad("type: %.40q: want linux-htb", kind)
	}
	if most, err = readRate(body, "max_rate"); err != nil {
		return nil, 0, err
	}
	of, err := body.list("queues")
	if err != nil {
		return nil, 0, err
	}
	for i, v := range of {
		d, ok := v.(dict)
		if !ok {
			return nil, 0, bad("queues: number %d: want a dictionary", i+1)
		}
		q := &api.QosQueue{Id: uint32(i)}
		if d["max_rate"] == nil && d["min_rate"] == nil {
			return nil, 0, bad("Required to specify max_rate or min_rate")
		}
		if q.MaxKbps, err = readRate(d, "max_rate"); err != nil {
			return nil, 0, err
		}
		if q.MinKbps, err = readRate(d, "min_rate"); err != nil {
			return nil, 0, err
		}
		list = append(list, q)
	}
	return list, most, nil
}

// readRate reads a rate in bits per second, as kilobits per second, rounded up.
func readRate(d dict, name string) (uint32, error) {
	if d[name] == nil {
		return 0, nil
	}
	n, err := d.number(name, 0, math.MaxUint32*1000)
	return uint32((n + 999) / 1000), err
}

// deleteQueues removes the queues of a switch's ports.
func (q *qos) deleteQueues(ctx context.Context, _ *request, sw flow.DPID) (any, error) {
	if !q.hasDatabase(sw) {
		return resultOf(sw, "failure"), nil
	}
	resp, err := q.queue.listQueues(ctx, &api.QosListQueuesRequest{})
	if err != nil {
		return nil, err
	}
	for _, p := range resp.Ports {
		if p.Dpid != sw.String() {
			continue
		}
		if _, err := q.queue.deleteQueues(ctx, &api.QosDeleteQueuesRequest{Dpid: p.Dpid, Port: p.Port}); err != nil {
			return nil, err
		}
	}
	return resultOf(sw, "success"), nil
}

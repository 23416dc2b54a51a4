package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
)

// database is what an Open vSwitch says of its interfaces, as its database server
// tells (RFC 7047), kept up to date.
type database struct {
	socket  string
	changed func()

	mu     sync.Mutex // guards the following
	conn   net.Conn   // nil: not connected
	enc    *json.Encoder
	asked  uint64
	wait   map[uint64]chan rpcMessage
	ifaces map[string]iface  // by row; nil until the server has told them
	names  map[string]string // the rows of interfaces, by their names
	ports  map[string]string // the rows of ports, by their names
	pauses pauses
}

type rpcMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// monitored is the tables and columns that are followed.
var monitored = map[string][]string{
	"Port":      {"name"},
	"Interface": {"name", "ofport", "type", "link_state", "mtu", "bfd", "bfd_status", "options", "external_ids", "error"},
}

const databaseTime = 10 * time.Second

// follow keeps the connection until ctx ends.
func (d *database) follow(ctx context.Context) {
	for ctx.Err() == nil {
		_ = d.session(ctx) // what is not connected is told in reports
		_ = backoff.Sleep(ctx, tryAgain)
	}
}

// session is follow while the server can be reached.
func (d *database) session(ctx context.Context) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", d.socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	d.mu.Lock()
	d.conn, d.enc, d.wait, d.ifaces = conn, json.NewEncoder(conn), map[uint64]chan rpcMessage{}, nil
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		for _, c := range d.wait {
			close(c)
		}
		d.conn, d.wait, d.ifaces = nil, nil, nil
		d.mu.Unlock()
		d.changed()
	}()
	failed := make(chan error, 1)
	go func() { failed <- d.begin(ctx) }()
	for dec := json.NewDecoder(conn); ; {
		var m rpcMessage
		if err := dec.Decode(&m); err != nil {
			return err
		}
		switch m.Method {
		case "echo":
			d.mu.Lock()
			err = d.send(map[string]any{"id": m.ID, "result": m.Params, "error": nil})
			d.mu.Unlock()
		case "update":
			var params []json.RawMessage
			if err = json.Unmarshal(m.Params, &params); err == nil && len(params) == 2 {
				err = d.update(params[1], false)
			}
		case "":
			var id uint64
			if json.Unmarshal(m.ID, &id) != nil {
				continue
			}
			d.mu.Lock()
			if c := d.wait[id]; c != nil {
				c <- m
				delete(d.wait, id)
			}
			d.mu.Unlock()
		}
		if err != nil {
			return err
		}
		select {
		case err := <-failed:
			if err != nil {
				return err
			}
		default:
		}
	}
}

// begin asks for the tables.
func (d *database) begin(ctx context.Context) error {
	want := map[string]any{}
	for table, columns := range monitored {
		want[table] = map[string]any{"columns": columns}
	}
	first, err := d.call(ctx, "monitor", []any{"Open_vSwitch", nil, want})
	if err != nil {
		return err
	}
	return d.update(first, true)
}

// update takes changes of rows, or, first, all that there are.
func (d *database) update(text json.RawMessage, first bool) error {
	var tables map[string]map[string]struct {
		Old map[string]json.RawMessage `json:"old"`
		New map[string]json.RawMessage `json:"new"`
	}
	if err := json.Unmarshal(text, &tables); err != nil {
		return err
	}
	d.mu.Lock()
	if first {
		d.ifaces, d.names, d.ports = map[string]iface{}, map[string]string{}, map[string]string{}
	}
	if d.ifaces == nil { // before the first answer, which has it
		d.mu.Unlock()
		return nil
	}
	now := time.Now()
	for id, row := range tables["Interface"] {
		if was, ok := d.ifaces[id]; ok && d.names[was.name] == id {
			delete(d.names, was.name)
		}
		was := d.ifaces[id]
		if delete(d.ifaces, id); row.New != nil {
			i := parseIface(row.New)
			d.ifaces[id], d.names[i.name] = i, id
			d.pauses.follow(&was, &i, now)
		} else {
			d.pauses.follow(&was, &iface{name: was.name}, now)
		}
	}
	if d.pauses.found(d.ifaces, now) {
		time.AfterFunc(doubtTime, d.changed)
	}
	for id, row := range tables["Port"] {
		var was, is string
		_ = json.Unmarshal(row.Old["name"], &was)
		_ = json.Unmarshal(row.New["name"], &is)
		if d.ports[was] == id {
			delete(d.ports, was)
		}
		if is != "" {
			d.ports[is] = id
		}
	}
	d.mu.Unlock()
	d.changed()
	return nil
}

// send is called with mu held.
func (d *database) send(m any) error {
	_ = d.conn.SetWriteDeadline(time.Now().Add(databaseTime))
	return d.enc.Encode(m)
}

// call makes a request.
func (d *database) call(ctx context.Context, method string, params []any) (json.RawMessage, error) {
	c := make(chan rpcMessage, 1)
	d.mu.Lock()
	if d.conn == nil {
		d.mu.Unlock()
		return nil, errors.New("the database of Open vSwitch is not reached")
	}
	d.asked++
	d.wait[d.asked] = c
	err := d.send(map[string]any{"id": d.asked, "method": method, "params": params})
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTime)
	defer cancel()
	select {
	case m, ok := <-c:
		if !ok {
			return nil, errors.New("the database of Open vSwitch has ended the connection")
		}
		if len(m.Error) > 0 && string(m.Error) != "null" {
			return nil, fmt.Errorf("the database of Open vSwitch refuses: %.200s", m.Error)
		}
		return m.Result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// transact makes operations as one, and returns the first thing that is wrong.
func (d *database) transact(ctx context.Context, operations ...any) error {
	text, err := d.call(ctx, "transact", append([]any{"Open_vSwitch"}, operations...))
	if err != nil {
		return err
	}
	var results []*struct{ Error, Details string }
	if err := json.Unmarshal(text, &results); err != nil {
		return err
	}
	for _, r := range results {
		if r != nil && r.Error != "" {
			return fmt.Errorf("the database of Open vSwitch refuses: %s %.200s", r.Error, r.Details)
		}
	}
	return nil
}

// iface is a row of the table Interface.
type iface struct {
	name, kind, linkState, problem string
	number, mtu                    int
	bfd, bfdStatus, options, ids   map[string]string
}

func parseIface(row map[string]json.RawMessage) iface {
	i := iface{bfd: texts(row["bfd"]), bfdStatus: texts(row["bfd_status"]), options: texts(row["options"]), ids: texts(row["external_ids"])}
	for column, to := range map[string]any{"name": &i.name, "type": &i.kind, "link_state": &i.linkState, "error": &i.problem, "ofport": &i.number, "mtu": &i.mtu} {
		_ = json.Unmarshal(row[column], to) // a value that is not set is an empty set
	}
	return i
}

// reached reports whether the server has told what there is.
func (d *database) reached() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ifaces != nil
}

// iface returns an interface by its name.
func (d *database) iface(name string) (iface, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, ok := d.ifaces[d.names[name]]
	return d.pauses.believe(i, time.Now()), ok
}

// marked returns the interfaces that have a text in their external_ids.
func (d *database) marked(key, value string) (list []iface) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range d.ifaces {
		if i.ids[key] == value {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b iface) int { return strings.Compare(a.name, b.name) })
	return list
}

// port returns the row of a port by its name; empty if there is none.
func (d *database) port(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ports[name]
}

// texts returns a value that is a map.
func texts(text json.RawMessage) map[string]string {
	var value [2]json.RawMessage
	var pairs [][2]string
	if json.Unmarshal(text, &value) != nil || json.Unmarshal(value[1], &pairs) != nil {
		return nil
	}
	m := map[string]string{}
	for _, p := range pairs {
		m[p[0]] = p[1]
	}
	return m
}

// mapping returns a map as a value.
func mapping(m map[string]string) []any {
	pairs := [][2]string{}
	for k, v := range m {
		pairs = append(pairs, [2]string{k, v})
	}
	return []any{"map", pairs}
}

// named is the condition that a row has a name.
func named(name string) [][3]any { return [][3]any{{"name", "==", name}} }

// switchd has Open vSwitch itself run a command, as ovs-appctl does.
func switchd(ctx context.Context, socket, method string, params ...string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(databaseTime))
	if err := json.NewEncoder(conn).Encode(map[string]any{"id": 0, "method": method, "params": params}); err != nil {
		return err
	}
	var m rpcMessage
	if err := json.NewDecoder(conn).Decode(&m); err != nil {
		return err
	}
	if len(m.Error) > 0 && string(m.Error) != "null" {
		return fmt.Errorf("ovs-vswitchd refuses %s: %.200s", method, m.Error)
	}
	return nil
}

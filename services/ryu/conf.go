package ryu

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/weft-sdn/weft/flow"
)

// The bounds of what is kept for each switch.
const (
	maxSwitches = 10_000
	maxKeys     = 256 // of a switch
	maxKey      = 256 // octets
	maxValue    = 16 << 10
	maxConf     = 512 << 10 // octets of all values of a switch
)

// bucket is the durable state that conf keeps its values in.
type bucket interface {
	Put(ctx context.Context, key string, value []byte) (uint64, error)
	Delete(ctx context.Context, key string) error
	All(ctx context.Context, f func(key string, value []byte, revision uint64) error) error
}

// conf is the values of rest_conf_switch: for each switch, names with a JSON
// value each.
type conf struct {
	bucket bucket

	mu     sync.Mutex // guards values, and is held while they are written
	values map[flow.DPID]map[string]json.RawMessage
}

// openConf loads the values in the bucket.
func openConf(ctx context.Context, b bucket) (*conf, error) {
	c := &conf{bucket: b, values: map[flow.DPID]map[string]json.RawMessage{}}
	err := b.All(ctx, func(key string, value []byte, _ uint64) error {
		sw, err := flow.ParseDPID(key)
		if err != nil {
			return err
		}
		values := map[string]json.RawMessage{}
		if err := json.Unmarshal(value, &values); err != nil {
			return fmt.Errorf("bucket ryu.conf, key %s: %w", key, err)
		}
		c.values[sw] = values
		return nil
	})
	return c, err
}

// confRoutes are the routes of rest_conf_switch.
func (s *server) confRoutes() []route {
	of := func(f func(context.Context, *request, flow.DPID) (any, error)) handler {
		return func(ctx context.Context, r *request) (any, error) {
			sw, err := sixteen(r)
			if err != nil {
				return nil, err
			}
			s.conf.mu.Lock()
			defer s.conf.mu.Unlock()
			return f(ctx, r, sw)
		}
	}
	const all, one, key = "/v1.0/conf/switches", "/v1.0/conf/switches/{dpid}", "/v1.0/conf/switches/{dpid}/{key}"
	return []route{
		{"GET", all, s.conf.list},
		{"GET", one, of(s.conf.keys)},
		{"DELETE", one, of(s.conf.deleteSwitch)},
		{"GET", key, of(s.conf.get)},
		{"PUT", key, of(s.conf.put)},
		{"DELETE", key, of(s.conf.deleteKey)},
	}
}

func (c *conf) list(context.Context, *request) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []string{}
	for _, sw := range slices.Sorted(maps.Keys(c.values)) {
		list = append(list, sw.String())
	}
	return list, nil
}

// The methods below are called with mu held.

func (c *conf) keys(_ context.Context, _ *request, sw flow.DPID) (any, error) {
	values, ok := c.values[sw]
	if !ok {
		return nil, noConf(sw)
	}
	return append([]string{}, slices.Sorted(maps.Keys(values))...), nil
}

func (c *conf) deleteSwitch(ctx context.Context, _ *request, sw flow.DPID) (any, error) {
	if _, ok := c.values[sw]; !ok {
		return nil, noConf(sw)
	}
	if err := c.bucket.Delete(ctx, sw.String()); err != nil {
		return nil, err
	}
	delete(c.values, sw)
	return reply{status: http.StatusAccepted}, nil
}

func (c *conf) get(_ context.Context, r *request, sw flow.DPID) (any, error) {
	value, ok := c.values[sw][r.args["key"]]
	if !ok {
		return nil, noKey(sw, r.args["key"])
	}
	return value, nil
}

func (c *conf) put(ctx context.Context, r *request, sw flow.DPID) (any, error) {
	key, value := r.args["key"], r.body
	if len(bytes.TrimSpace(value)) == 0 {
		value = []byte("{}")
	}
	if !json.Valid(value) {
		return nil, bad("body: want a value of JSON")
	}
	old, known := c.values[sw]
	values := maps.Clone(old)
	if values == nil {
		values = map[string]json.RawMessage{}
	}
	values[key] = bytes.Clone(value)
	size := 0
	for k, v := range values {
		size += len(k) + len(v)
	}
	if len(key) > maxKey || len(value) > maxValue || len(values) > maxKeys || size > maxConf || !known && len(c.values) >= maxSwitches {
		return nil, &failure{413, fmt.Sprintf("want at most %d switches, %d keys of a switch, %d octets of a key and %d of a value, %d in all", maxSwitches, maxKeys, maxKey, maxValue, maxConf)}
	}
	if err := c.save(ctx, sw, values); err != nil {
		return nil, err
	}
	return reply{status: http.StatusCreated}, nil
}

func (c *conf) deleteKey(ctx context.Context, r *request, sw flow.DPID) (any, error) {
	key := r.args["key"]
	if _, ok := c.values[sw][key]; !ok {
		return nil, noKey(sw, key)
	}
	values := maps.Clone(c.values[sw])
	delete(values, key)
	return nil, c.save(ctx, sw, values)
}

func (c *conf) save(ctx context.Context, sw flow.DPID, values map[string]json.RawMessage) error {
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	if _, err := c.bucket.Put(ctx, sw.String(), text); err != nil {
		return err
	}
	c.values[sw] = values
	return nil
}

func noConf(sw flow.DPID) error { return &failure{404, "no dpid is found " + sw.String()} }

func noKey(sw flow.DPID, key string) error {
	return &failure{404, fmt.Sprintf("no dpid/key is found %v %.80s", sw, key)}
}

package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"runtime"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
)

// manyPorts is an answer whose texts are empty: short in protobuf, long in JSON.
func manyPorts(nodes, ports int) *api.ListNodesResponse {
	m := &api.ListNodesResponse{}
	for range nodes {
		r := &api.NodeReport{}
		for n := range ports {
			r.Ports = append(r.Ports, &api.NodePort{Port: uint32(n + 1)})
		}
		m.Nodes = append(m.Nodes, &api.Node{Report: r})
	}
	return m
}

// What is written piece by piece is what is written at once.
func TestStreamedJSON(t *testing.T) {
	for _, m := range []proto.Message{
		&api.ListNodesResponse{}, manyPorts(3, 2), &api.Node{}, &api.NodeReport{Dpid: `"<é`, Ports: []*api.NodePort{{Port: 1}, {Port: 2, Name: "x"}}},
		&api.ForgetSwitchResponse{Known: true}, &api.NodeWanted{Version: 1 << 60, Tunnels: []*api.WantedTunnel{{Key: 3}}},
	} {
		var got bytes.Buffer
		if err := writeJSON(&got, m.ProtoReflect()); err != nil {
			t.Fatal(err)
		}
		want, err := written().Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if err := json.Unmarshal(got.Bytes(), &a); err != nil {
			t.Fatalf("%v: %s", err, got.Bytes())
		}
		if err := json.Unmarshal(want, &b); err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s, want %s", got.Bytes(), want)
		}
	}
}

// What an answer counts is no less than its JSON takes, and a large one's JSON is
// never in memory as a whole.
func TestLargeAnswersAreCounted(t *testing.T) {
	m := manyPorts(200, 1000)
	peak, base, octets := uint64(0), uint64(0), 0
	var stats runtime.MemStats
	w := writerFunc(func(p []byte) (int, error) {
		if octets += len(p); base == 0 || octets>>20 != (octets-len(p))>>20 {
			runtime.GC()
			runtime.ReadMemStats(&stats)
			peak = max(peak, stats.HeapAlloc)
			if base == 0 {
				base = stats.HeapAlloc
			}
		}
		return len(p), nil
	})
	if err := writeJSON(w, m.ProtoReflect()); err != nil {
		t.Fatal(err)
	}
	if sizeOf(m) < octets {
		t.Errorf("it counts %d octets, and its JSON has %d (protobuf %d)", sizeOf(m), octets, proto.Size(m))
	}
	if octets < 10<<20 || int(peak)-int(base) > octets/8 {
		t.Errorf("%d octets of JSON take %d octets of memory while they are written", octets, int(peak)-int(base))
	}
	runtime.KeepAlive(m)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A client gets a large list as it gets a small one.
func TestLargeListOverHTTP(t *testing.T) {
	for _, nodes := range []int{1, 30} {
		list := manyPorts(nodes, 100)
		s := serve(t, nil)
		s.calls.rpcs[fullName(api.ListNodes.Name)] = method(s, api.ListNodes, list)
		resp, body := s.request(t, http.MethodGet, "/v1/nodes", "")
		var got struct{ Nodes []any }
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" || json.Unmarshal([]byte(body), &got) != nil || len(got.Nodes) != nodes {
			t.Errorf("%s: %d of %d nodes: %.200s", resp.Status, len(got.Nodes), nodes, body)
		}
	}
}

package test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"
)

// rpcEvent is what ws_topology calls at its client.
type rpcEvent struct {
	Version string `json:"jsonrpc"`
	ID      uint64 `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

// follower is a client of ws_topology that answers every call, as Ryu wants it.
type follower struct {
	mu     sync.Mutex
	events []rpcEvent
}

// follow connects a client until the test ends.
func follow(t *testing.T, address string) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	conn, _, err := websocket.Dial(ctx, "ws://"+address+"/v1.0/topology/ws", nil)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	f := &follower{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			_, text, err := conn.Read(ctx)
			if err != nil {
				return
			}
			var e rpcEvent
			if json.Unmarshal(text, &e) != nil {
				return
			}
			f.mu.Lock()
			f.events = append(f.events, e)
			f.mu.Unlock()
			reply := `{"id": ` + jsonText(e.ID) + `, "jsonrpc": "2.0", "result": ""}`
			if conn.Write(ctx, websocket.MessageText, []byte(reply)) != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		conn.CloseNow()
		<-ended
	})
	return f
}

// seen returns the events of links so far, each once and in order of their text,
// after checking that all events are numbered calls of JSON-RPC 2.0. Hosts may
// speak at any time, so theirs are not comparable.
func (f *follower) seen(t *testing.T) []string {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []string
	for i, e := range f.events {
		if e.Version != "2.0" || e.ID != uint64(i+1) || len(e.Params) != 1 {
			t.Fatalf("event %d is %+v: want version 2.0, id %d and one parameter", i, e, i+1)
		}
		if strings.HasPrefix(e.Method, "event_link_") {
			list = append(list, e.Method+" "+jsonText(ryuBlanked(e.Params[0])))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// topologyAnswers has a controller find a network, and lose and find its link;
// it returns what rest_topology says and ws_topology has told.
func topologyAnswers(t *testing.T, l *lab.Lab, address string) []ryuAnswer {
	t.Helper()
	knowsSwitches(t, address, 2)
	count := func(what string) int {
		a, _ := (&ryuRequest{method: "GET", path: "/v1.0/topology/" + what}).ask(t, address)
		list, _ := a.Body.([]any)
		return len(list)
	}
	for _, sw := range []string{"1", "2"} { // what comes to a switch goes to the controller, as with Ryu's own applications
		miss := ryuRequest{method: "POST", path: "/stats/flowentry/add", body: `{"dpid": ` + sw + `, "priority": 0, "actions": [{"type": "OUTPUT", "port": "CONTROLLER"}]}`}
		if a, _ := miss.ask(t, address); a.Status != 200 {
			t.Fatalf("%s: status %d", &miss, a.Status)
		}
	}
	eventually(t, "both directions of the link and two hosts with their addresses known", func() bool {
		if count("links") != 2 {
			return false
		}
		l.PingAll(context.Background(), l.AllPairs(false), traffic.PingOptions{Count: 1, Timeout: 200 * time.Millisecond})
		a, _ := (&ryuRequest{method: "GET", path: "/v1.0/topology/hosts"}).ask(t, address)
		hosts, _ := a.Body.([]any)
		return len(hosts) == 2 && !slices.ContainsFunc(hosts, func(h any) bool { // one that has spoken IPv6 only
			addresses, _ := h.(map[string]any)["ipv4"].([]any)
			return len(addresses) == 0
		})
	})
	var list []ryuAnswer
	for _, path := range []string{
		"switches", "switches/0000000000000001", "switches/0000000000000009", "switches/1", "links", "links/0000000000000002",
		"links/0000000000000009", "hosts", "hosts/0000000000000001", "hosts/0000000000000009", "hosts/x", "nothing",
	} {
		a, _ := (&ryuRequest{method: "GET", path: "/v1.0/topology/" + path}).ask(t, address)
		list = append(list, a)
	}
	f := follow(t, address)
	if err := l.LinkDown(context.Background(), "s1", "s2"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the link is gone", func() bool { return count("links") == 0 })
	if err := l.LinkUp(context.Background(), "s1", "s2"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the link is back", func() bool { return count("links") == 2 })
	for end := time.Now().Add(testwait.Limit); len(f.seen(t)) < 4; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("events of the link that have come within %v: %v", testwait.Limit, f.seen(t))
		}
	}
	var told []any
	for _, e := range f.seen(t) {
		told = append(told, e)
	}
	return append(list, ryuAnswer{Request: "WS /v1.0/topology/ws", Status: 101, Body: told})
}

// TestRyuTopology compares what rest_topology and ws_topology tell of a network
// with what they tell with Ryu.
func TestRyuTopology(t *testing.T) {
	t.Parallel()
	var want []ryuAnswer
	if *ryuDirectory != "" {
		openflow := freeAddress(t)
		address := startRyu(t, openflow, "--observe-links", "ryu.app.ofctl_rest", "ryu.app.rest_topology", "ryu.app.ws_topology")
		want = topologyAnswers(t, upFor(t, ryuSpec, openflow), address)
		if *ryuRecord {
			ryuKeep(t, "topology", want)
		}
	} else {
		want = ryuRecorded(t)["topology"]
	}
	c, address := startREST(t, options{only: []string{"southbound", "discovery", "hosts", "flowrules", "ryu"}})
	got := topologyAnswers(t, up(t, ryuSpec, c), address)
	if len(got) != len(want) {
		t.Fatalf("%d answers, %d of Ryu", len(got), len(want))
	}
	for i, a := range got {
		method, path, _ := strings.Cut(a.Request, " ")
		ryuJudge(t, &ryuRequest{line: i, method: method, path: strings.TrimSpace(path)}, a, want[i])
	}
}

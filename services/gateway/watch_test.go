package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weft-sdn/weft/api"
)

// fakePackets gives every client the packets that are put for its match.
type fakePackets struct {
	mu      sync.Mutex // guards what follows
	clients map[string]chan *api.WatchPacketsResponse
}

func (f *fakePackets) WatchPackets(ctx context.Context, r *api.WatchPacketsRequest, _ time.Duration, tell func(*api.WatchPacketsResponse) error) error {
	if r.Match["ip_proto"] == "ham" {
		return api.Errorf(codes.InvalidArgument, "ip_proto ham: want a number")
	}
	lines := make(chan *api.WatchPacketsResponse, 16)
	f.mu.Lock()
	if f.clients == nil {
		f.clients = map[string]chan *api.WatchPacketsResponse{}
	}
	f.clients[r.Match["eth_type"]] = lines
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.clients, r.Match["eth_type"])
		f.mu.Unlock()
	}()
	if err := tell(&api.WatchPacketsResponse{}); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line := <-lines:
			if err := tell(line); err != nil {
				return err
			}
		}
	}
}

// put queues a packet for the client of a match; false if there is no room.
func (f *fakePackets) put(match, summary string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case f.clients[match] <- &api.WatchPacketsResponse{Packet: &api.WatchedPacket{Summary: summary, Stages: []*api.WatchedStage{{Service: "hosts", Transport: "shm", StartUs: 12.5}}}}:
		return true
	default:
		return false
	}
}

func (f *fakePackets) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.clients)
}

// watch opens a stream of packets, and returns what reads a line.
func (s *testServer) watching(t *testing.T, body, token string) (resp *http.Response, line func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.address+watchPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	if resp, err = client.Do(req); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	return resp, func() string {
		if !lines.Scan() {
			return ""
		}
		return lines.Text()
	}
}

// TestWatchTwoClients has two clients watch different packets at once; one then
// does not read, and the other still gets all of its own.
func TestWatchTwoClients(t *testing.T) {
	s := serve(t, nil)
	resp, arp := s.watching(t, `{"match":{"eth_type":"0x0806"},"one_in":1}`, "")
	_, _ = s.watching(t, `{"match":{"eth_type":"0x0800"}}`, "") // does not read
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != "application/x-ndjson" {
		t.Fatalf("%s, type %q", resp.Status, got)
	}
	if got := arp(); got != `{"packet":null,"missed":0}` {
		t.Fatalf("first line %s", got)
	}
	wait(t, func() bool { return s.packets.count() == 2 && s.watch.places.Len() == 2 })
	for full := 0; full < 50; { // until nothing more fits on its way
		if s.packets.put("0x0800", strings.Repeat("x", 1<<20)) {
			full = 0
		} else {
			full++
			time.Sleep(time.Millisecond)
		}
	}
	for i := range 100 {
		wait(t, func() bool { return s.packets.put("0x0806", fmt.Sprint("packet ", i)) })
		var got struct {
			Packet struct {
				Summary string
				Stages  []struct {
					Transport string
					StartUs   float64 `json:"start_us"`
				}
			}
		}
		text := arp()
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.Packet.Summary != fmt.Sprint("packet ", i) || got.Packet.Stages[0].Transport != "shm" || got.Packet.Stages[0].StartUs != 12.5 {
			t.Fatalf("line %d is %s: %v", i, text, err)
		}
	}
}

// TestWatchEnds has a client go, and the gateway stop under another.
func TestWatchEnds(t *testing.T) {
	s := serve(t, nil)
	resp, line := s.watching(t, "", "")
	line()
	resp.Body.Close()
	wait(t, func() bool { return s.packets.count() == 0 && s.watch.places.Len() == 0 })
	_, line = s.watching(t, "", "")
	line()
	s.stopWithin = time.Hour // for ever, if it waited for a client that watches
	s.stop()
	if got := line(); got != "" {
		t.Errorf("after the end: %s", got)
	}
}

// TestWatchSeats: clients that may only read keep no operator from watching, over
// HTTP or gRPC, and one whose token ends does not watch on.
func TestWatchSeats(t *testing.T) {
	s := serve(t, func(c *Config) { c.OpenLoopback = false })
	reader, operator := s.made(t, "reader", "read"), s.made(t, "operator", "operate")
	watch := func(name, token string) (*http.Response, func() string) {
		resp, line := s.watching(t, `{"match":{"eth_type":"`+name+`"}}`, token)
		if resp.StatusCode == http.StatusOK {
			line()
		}
		return resp, line
	}
	_, oldest := watch("0", reader)
	for i := range watchersMost - 1 {
		watch(fmt.Sprint(i+1), reader)
	}
	if resp, _ := watch("x", reader); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("one reader too many: %s", resp.Status)
	}
	resp, operators := watch("y", operator)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("an operator: %s", resp.Status)
	}
	if got := oldest(); got != "" {
		t.Errorf("the reader that had to go gets %s", got)
	}
	if _, err := s.guard.ledger.revoke(t.Context(), &api.RevokeTokenRequest{Name: "reader"}); err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool { return s.packets.count() == 1 && s.watch.places.Len() == 1 })
	if s.packets.put("y", "p"); !strings.Contains(operators(), `"summary":"p"`) {
		t.Error("the operator gets nothing any more")
	}
}

// TestWatchWrongRequests are answered before a stream begins.
func TestWatchWrongRequests(t *testing.T) {
	s := serve(t, nil)
	for body, want := range map[string]string{
		`{"match":{"ip_proto":"ham"}}`: "want a number",
		`{"one_on":3}`:                 "one_in",
		`{"match":`:                    "JSON",
		`{"match":{"a":"` + strings.Repeat("x", maxBody) + `"}}`: "larger",
	} {
		resp, text := s.request(t, http.MethodPost, watchPath, body)
		if resp.StatusCode < 400 || !strings.Contains(text, want) {
			t.Errorf("%.40s: %s %s, want %s", body, resp.Status, text, want)
		}
	}
	if resp, text := s.request(t, http.MethodPost, watchPath+"?match=x", ""); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("%s %s", resp.Status, text)
	}
}

// TestWatchRole: who may read may watch, others may not, and who may not any
// more is cut off.
func TestWatchRole(t *testing.T) {
	s := serve(t, func(c *Config) { c.OpenLoopback = false; c.Token = "a-token-for-all-of-it" })
	if resp, _ := s.watching(t, "", ""); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %s", resp.Status)
	}
	node := s.made(t, "node", "node")
	if resp, line := s.watching(t, "", node); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a node's token: %s %s", resp.Status, line())
	}
	reader := s.made(t, "reader", "read")
	resp, line := s.watching(t, `{"match":{"eth_type":"1"}}`, reader)
	if resp.StatusCode != http.StatusOK || line() == "" {
		t.Fatalf("a reader's token: %s", resp.Status)
	}
	if _, err := s.guard.ledger.revoke(t.Context(), &api.RevokeTokenRequest{Name: "reader"}); err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool { return s.packets.put("1", "late") || s.packets.count() == 0 })
	if got := line(); got != "" {
		t.Errorf("after the token has ended: %s", got)
	}
}

// TestWatchNext calls the method without a stream.
func TestWatchNext(t *testing.T) {
	s := serve(t, nil)
	conn, err := grpc.NewClient("passthrough:///"+s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		for !s.packets.put("", "the next") {
			time.Sleep(time.Millisecond)
		}
	}()
	got, err := api.NewGatewayClient(conn).WatchPackets(t.Context(), &api.WatchPacketsRequest{})
	if err != nil || got.GetPacket().GetSummary() != "the next" {
		t.Errorf("%v %v", got, err)
	}
}

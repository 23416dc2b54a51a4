package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/flow"
)

// collect returns a collector and what it has been sent.
func collect(t *testing.T) (url string, spans func() []*otlp.Span) {
	var mu sync.Mutex
	var list []*otlp.Span
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/traces" {
			t.Errorf("spans posted to %s", r.URL.Path)
		}
		body, err := io.ReadAll(r.Body)
		if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, err = io.ReadAll(z)
			}
		}
		var m collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &m)
		}
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, rs := range m.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				list = append(list, ss.Spans...)
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []*otlp.Span { mu.Lock(); defer mu.Unlock(); return list }
}

// TestTwoProcesses has two processes tell of one packet-in: the collector sees
// one trace, with one root and the others below it.
func TestTwoProcesses(t *testing.T) {
	url, spans := collect(t)
	ctx := context.Background()
	var both []*Exporter
	for _, process := range []string{"southbound", "forwarding"} {
		e, err := New(ctx, Config{Endpoint: url, OneIn: 1, Process: process})
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, e)
	}
	n := both[0].Sample()
	now := time.Now()
	both[0].Span(local.Span{Trace: n, Name: "discovery", Verdict: flow.Next, Began: now, Ended: now.Add(time.Microsecond)})
	both[1].Span(local.Span{Trace: n, Name: "forwarding", Verdict: flow.Done, Began: now, Ended: now.Add(time.Microsecond)})
	both[0].Span(local.Span{Trace: n, Root: true, Name: "packet-in", Switch: 7, Port: 3, Verdict: flow.Done, Began: now, Ended: now.Add(time.Millisecond)})
	for _, e := range both {
		if err := e.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	var root *otlp.Span
	for _, s := range spans() {
		if len(s.ParentSpanId) == 0 {
			if root != nil {
				t.Fatal("two roots")
			}
			root = s
		}
	}
	if root == nil || root.Name != "packet-in" || root.EndTimeUnixNano-root.StartTimeUnixNano != uint64(time.Millisecond) {
		t.Fatalf("root span %v", root)
	}
	below := map[string]bool{}
	for _, s := range spans() {
		if !bytes.Equal(s.TraceId, root.TraceId) {
			t.Errorf("span %s is of another trace", s.Name)
		}
		if bytes.Equal(s.ParentSpanId, root.SpanId) {
			below[s.Name] = true
		}
	}
	if len(spans()) != 3 || !below["discovery"] || !below["forwarding"] {
		t.Errorf("%d spans, below the root: %v", len(spans()), below)
	}
}

func TestSample(t *testing.T) {
	e, err := New(context.Background(), Config{Endpoint: "http://127.0.0.1:1", OneIn: 10})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for range 100 {
		if e.Sample() != 0 {
			n++
		}
	}
	if n != 10 {
		t.Errorf("%d of 100 packet-ins traced, want 10", n)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []Config{{Endpoint: "127.0.0.1:4318", OneIn: 1}, {Endpoint: "ftp://x", OneIn: 1}, {Endpoint: "http://", OneIn: 1}, {Endpoint: "http://x"}} {
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

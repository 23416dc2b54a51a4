package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/machineservice"
	"github.com/weft-sdn/weft/internal/shares"
	"github.com/weft-sdn/weft/internal/testwait"
)

// post sends a lab file to be checked, as the gateway does for a client.
func post(ctx context.Context, url, name, role, file string) (code int, text string, err error) {
	body, err := json.Marshal(map[string]string{"file": file})
	if err != nil {
		return 0, "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/lab/labs:check", bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set(machineservice.CallerHeader, name)
	r.Header.Set(machineservice.RoleHeader, role)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// TestReadersKeepNobodyOut: readers who send files of a megabyte, as many as may wait,
// keep no administrator waiting: its file is read while theirs wait. Who is gone waits
// no longer, and none of them has more waiting than its share.
func TestReadersKeepNobodyOut(t *testing.T) {
	s := newServer(t.Context(), options("unused", nil))
	handler, err := s.service().Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	first, err := s.places.reading.TryAcquire(shares.Client{Name: "reader", Rank: shares.Reader}, nil) // a file that is being read
	if err != nil {
		t.Fatal(err)
	}
	var huge strings.Builder
	for i := 0; huge.Len() < 1<<20-64; i++ {
		fmt.Fprintf(&huge, "k%d: 1\n", i)
	}
	type answer struct {
		who  string
		code int
		text string
		err  error
	}
	answers := make(chan answer, 100)
	send := func(ctx context.Context, who, role, file string) {
		code, text, err := post(ctx, server.URL, who, role, file)
		answers <- answer{who, code, text, err}
	}
	waiting := func(n int) {
		t.Helper()
		testwait.Until(t, fmt.Sprintf("%d files wait", n), func() bool { return s.places.reading.Waiting() == n })
	}
	const readers = 4
	const small = "controllers: []"
	for range maxOwnWait {
		go send(t.Context(), "one", "read", small)
	}
	waiting(maxOwnWait)
	send(t.Context(), "one", "read", small)
	if a := <-answers; a.code != http.StatusTooManyRequests || !strings.Contains(a.text, "8 requests of one wait already") {
		t.Errorf("beyond its share: %+v", a)
	}
	ctx, leave := context.WithCancel(t.Context())
	go send(ctx, "gone", "read", small)
	waiting(maxOwnWait + 1)
	for i := range readers {
		go send(t.Context(), fmt.Sprint("reader ", i), "read", huge.String())
	}
	waiting(maxOwnWait + readers + 1)
	leave()
	waiting(maxOwnWait + readers)
	if a := <-answers; a.who != "gone" || a.err == nil {
		t.Errorf("%+v; want the one that has gone", a)
	}
	send(t.Context(), "root", "admin", "switches: [{name: s1}]")
	if a := <-answers; a.who != "root" || a.code != http.StatusOK || !strings.Contains(a.text, `"s1"`) {
		t.Errorf("the first answer: %+v", a)
	}
	if n := s.places.reading.Waiting(); n != maxOwnWait+readers {
		t.Errorf("%d files of readers wait while the administrator's was read", n)
	}
	first.Release()
	for range maxOwnWait + readers {
		if a := <-answers; a.code != http.StatusOK || !strings.Contains(a.text, "unknown key") {
			t.Errorf("%s: %d %.300s %v", a.who, a.code, a.text, a.err)
		}
	}
}

// A measurement that has to end for another client says so; the others go on.
func TestMeasurementsAreShared(t *testing.T) {
	s := newServer(t.Context(), options("unused", nil))
	as := func(name, role string) context.Context {
		var ctx context.Context
		handler, err := machineservice.Service{Streams: map[machineservice.Route]machineservice.StreamHandler{
			{Verb: "GET", Path: "/"}: func(_ http.ResponseWriter, r *http.Request, _ map[string]string) {
				ctx = context.WithoutCancel(r.Context())
			},
		}, API: &api.Lab_ServiceDesc, Server: s, Log: s.o.Log}.Handler()
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set(machineservice.CallerHeader, name)
		r.Header.Set(machineservice.RoleHeader, role)
		handler.ServeHTTP(httptest.NewRecorder(), r)
		return ctx
	}
	var all []context.Context
	var leaves []func(error) error
	for range maxMeasures {
		ctx, leave, err := enter(as("one", "operate"), s.places.measures)
		if err != nil {
			t.Fatal(err)
		}
		all, leaves = append(all, ctx), append(leaves, leave)
	}
	if _, _, err := enter(as("one", "operate"), s.places.measures); err == nil || !strings.Contains(err.Error(), "8 measurements already") {
		t.Errorf("a ninth of one client: %v", err)
	}
	if _, _, err := enter(as("looker", "read"), s.places.measures); err == nil {
		t.Error("a reader ends an operator's measurement")
	}
	for _, who := range [][2]string{{"two", "operate"}, {"root", "admin"}} {
		if _, _, err := enter(as(who[0], who[1]), s.places.measures); err != nil {
			t.Errorf("%s: %v", who[0], err)
		}
	}
	for i, leave := range leaves {
		err := leave(nil)
		if ended := all[i].Err() != nil; i < 2 && (err == nil || !strings.Contains(err.Error(), "another client takes the place")) || i >= 2 && err != nil || !ended {
			t.Errorf("measurement %d: %v", i, err)
		}
	}
}

// What is mapped for a client that is no administrator is bounded; the error says by
// what.
func TestMappingIsBounded(t *testing.T) {
	s := newServer(t.Context(), options("unused", nil))
	handler, err := s.service().Handler()
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	file.WriteString("switches:\n")
	for i := range 301 {
		fmt.Fprintf(&file, "- {name: s%d}\n", i)
	}
	body, err := json.Marshal(map[string]string{"file": file.String(), "machines": "machines: [{name: m, ssh: root@192.0.2.1, address: 192.0.2.1}]"})
	if err != nil {
		t.Fatal(err)
	}
	for role, want := range map[string]string{"read": "the file has 301 switches and hosts", "admin": `"machine":"m"`} {
		r := httptest.NewRequest(http.MethodPost, "/v1/lab/testbeds:map", bytes.NewReader(body))
		r.Header.Set(machineservice.RoleHeader, role)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %.300s; want %s", role, w.Code, w.Body, want)
		}
	}
}

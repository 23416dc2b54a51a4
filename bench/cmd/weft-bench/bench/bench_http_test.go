package bench

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// benchHTTP runs weft bench http with a line of arguments.
func benchHTTP(line string) (string, error) {
	cmd := benchHTTPCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(strings.Fields(line))
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	root := &cobra.Command{Use: "weft"}
	root.AddCommand(cmd)
	root.SetArgs(append([]string{"http"}, strings.Fields(line)...))
	err := root.Execute()
	return out.String(), err
}

func TestBenchHTTP(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "PUT" || r.Header.Get("X-A") != "b" {
			w.WriteHeader(400)
		}
		w.Header().Set("X-Weft-Instance", "one")
	}))
	defer s.Close()
	const short = " --http1 --duration 100ms --warmup 0 --connections 2"
	out, err := benchHTTP(s.URL + short + " --method put --data {} --header X-A:b --rate 200 -o json")
	var r struct {
		Machine   map[string]any
		Load      map[string]any
		Done      int
		Instances map[string]int
		Latency   map[string]float64
	}
	if err != nil || json.Unmarshal([]byte(out), &r) != nil || r.Done != 20 || r.Instances["one"] != 20 || r.Latency["p95_us"] <= 0 || r.Load["loop"] != "open" || r.Machine == nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err = benchHTTP(s.URL + short + " --method put --header X-A:b"); err != nil || !strings.Contains(out, "closed loop, 2 connections × 1 stream") || !strings.Contains(out, "one") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err = benchHTTP(s.URL + short); err == nil || !strings.Contains(err.Error(), "no request was answered well") || !strings.Contains(out, "status") {
		t.Errorf("all are refused: %v: %s", err, out)
	}
	for line, want := range map[string]string{
		"10.0.0.5/x":                       "want a URL",
		"http://x --rate -1":               "rate -1",
		"http://x --rate 1 --arrivals now": "allowed: constant, poisson",
		"http://x --header nothing":        "want NAME: VALUE",
		"http://x --http1 --streams 4":     "streams 4",
		"http://x --authority /no/file":    "no such file",
		"http://x --certificate /no/file":  "/no/file",
	} {
		if _, err := benchHTTP(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

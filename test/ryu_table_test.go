package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ryuRequest is one of the curl lines of a file in testdata/ryu.
type ryuRequest struct {
	line         int
	method, path string
	body         string
	differs      int    // the status that Weft answers with otherwise than Ryu; 0: as Ryu
	why          string // it does
}

func (r *ryuRequest) String() string { return fmt.Sprintf("%s %s %s", r.method, r.path, r.body) }

// ryuRequests reads the requests of a file in testdata/ryu.
func ryuRequests(t *testing.T, file string) (list []ryuRequest) {
	t.Helper()
	text, err := os.ReadFile("testdata/ryu/" + file)
	if err != nil {
		t.Fatal(err)
	}
	line := 1
	for _, block := range strings.Split(string(text), "\n\n") {
		r := ryuRequest{line: line}
		line += strings.Count(block, "\n") + 2
		for strings.HasPrefix(block, "#") {
			first, rest, _ := strings.Cut(block, "\n")
			if note, ok := strings.CutPrefix(first, "#: "); ok {
				status, why, _ := strings.Cut(note, " ")
				if r.differs, err = strconv.Atoi(status); err != nil {
					t.Fatalf("line %d: %v", r.line, err)
				}
				r.why = why
			}
			block = rest
		}
		if block = strings.TrimSpace(block); block == "" {
			continue
		}
		if hosts, ok := strings.CutPrefix(block, "ping "); ok {
			r.method, r.path = "PING", hosts
			list = append(list, r)
			continue
		}
		var url string
		if _, err := fmt.Sscanf(block, "curl -X %s", &r.method); err != nil {
			t.Fatalf("line %d: %q: %v", r.line, block, err)
		}
		rest := strings.TrimPrefix(block, "curl -X "+r.method+" ")
		if data, ok := strings.CutPrefix(rest, "-d "); ok {
			r.body, rest, ok = strings.Cut(data[1:], data[:1])
			if !ok {
				t.Fatalf("line %d: the body has no end", r.line)
			}
		}
		url = strings.TrimSpace(rest)
		path, ok := strings.CutPrefix(url, "http://localhost:8080")
		if !ok {
			t.Fatalf("line %d: %q is no address of Ryu", r.line, url)
		}
		r.path = path
		list = append(list, r)
	}
	return list
}

// ryuAnswer is what came of a request.
type ryuAnswer struct {
	Request string `json:"request"`
	Status  int    `json:"status"`
	// Body is the JSON of the answer with what no two networks have in common
	// left out; nil if it was none.
	Body any `json:"body,omitempty"`
	// Text is the body if it was no JSON, of answers of success only: Ryu's
	// errors have none, or a page of HTML.
	Text string `json:"text,omitempty"`
}

// ask makes a request.
func (r *ryuRequest) ask(t *testing.T, address string) (ryuAnswer, http.Header) {
	t.Helper()
	req, err := http.NewRequest(r.method, "http://"+address+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if r.body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded") // as curl does
	}
	client := http.Client{Timeout: time.Minute}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("line %d: %v", r.line, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("line %d: %v", r.line, err)
	}
	a := ryuAnswer{Request: r.String(), Status: resp.StatusCode}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if err := d.Decode(&a.Body); err != nil {
			t.Fatalf("line %d: %s: %v in %.200q", r.line, r, err, body)
		}
		a.Body = ryuAlike(a.Body, r.path)
	} else if strings.HasPrefix(r.path, "/router/") && resp.StatusCode < 500 && json.Unmarshal(body, &a.Body) == nil {
		a.Body = ryuAlike(a.Body, r.path) // an error of rest_router is JSON that does not say so
	} else if resp.StatusCode < 300 {
		a.Text = strings.TrimSpace(string(body))
	}
	return a, resp.Header
}

// ryuVarying are the fields in which two networks differ that have been told the
// same: times, what hosts have happened to send, and what says which controller
// it is.
var ryuVarying = map[string]bool{
	"duration_sec": true, "duration_nsec": true,
	"packet_count": true, "byte_count": true, "lookup_count": true, "matched_count": true,
	"rx_packets": true, "tx_packets": true, "rx_bytes": true, "tx_bytes": true, "rx_dropped": true, "tx_dropped": true,
	"packet_in_count": true, "byte_in_count": true, "packet_band_count": true, "byte_band_count": true,
	"generation_id": true, "role": true, // Weft is master of its switches, with a generation that grows
	"sw_desc": true, // the version of Open vSwitch
	"ipv6":    true, // of a host: what it has happened to say
	"state":   true, // of a port, which follows its configuration after a while
	"hw_addr": true, // of a port: random in each lab
}

// ryuAlike returns an answer with the ryuVarying fields blanked and with the
// lists that a switch gives in any order in order.
func ryuAlike(v any, path string) any {
	v = ryuBlanked(v)
	if strings.HasPrefix(path, "/firewall/") || strings.HasPrefix(path, "/qos/") || strings.HasPrefix(path, "/router/") {
		return rulesOrdered(v)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return ryuOrdered(v)
	}
	for sw, list := range m {
		if strings.HasPrefix(path, "/stats/tablefeatures/") {
			m[sw] = tableSummary(list)
		} else if strings.HasPrefix(path, "/stats/") {
			m[sw] = ryuOrdered(list)
		}
	}
	return m
}

func ryuBlanked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if ryuVarying[k] {
				v[k] = "*"
			} else {
				v[k] = ryuBlanked(v[k])
			}
		}
	case []any:
		for i := range v {
			v[i] = ryuBlanked(v[i])
		}
	}
	return v
}

func ryuOrdered(v any) any {
	if list, ok := v.([]any); ok {
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(jsonText(a), jsonText(b)) })
	}
	return v
}

// rulesOrdered puts the lists of an answer of rest_firewall or rest_qos in
// order, and the numbers of rules in a text: Ryu has them as the switch happens to list its entries.
func rulesOrdered(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = rulesOrdered(v[k])
		}
	case []any:
		for i := range v {
			v[i] = rulesOrdered(v[i])
		}
		return ryuOrdered(v)
	case string:
		for _, name := range []string{"ruleID=", "QoS ID=", "address_id=", "route_id="} {
			if head, numbers, ok := strings.Cut(v, name); ok {
				end := strings.IndexByte(numbers+"]", ']')
				list := strings.Split(numbers[:end], ",")
				slices.Sort(list)
				return head + name + strings.Join(list, ",") + numbers[end:]
			}
		}
	}
	return v
}

// tableSummary keeps the first and the last of the 254 tables of Open vSwitch, which
// are alike, and their number.
func tableSummary(v any) any {
	list, ok := v.([]any)
	if !ok || len(list) < 2 {
		return v
	}
	return []any{len(list), list[0], list[len(list)-1]}
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

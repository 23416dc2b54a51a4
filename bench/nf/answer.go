package nf

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/weft-sdn/weft/sbi"
)

// answer is what a request got.
type answer struct {
	status   int
	header   http.Header
	body     []byte
	instance string // that answered, if it says so
}

// mostAnswer bounds the answers that are read.
const mostAnswer = 16 << 20

// send sends a request and reads its answer.
func (c *consumer) send(ctx context.Context, method, uri, kind string, body []byte, headers ...string) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, uri, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", Product+"-"+string(c.self.NFType))
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for n := 0; n+1 < len(headers); n += 2 {
		req.Header.Set(headers[n], headers[n+1])
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer+1))
	if err == nil && len(b) > mostAnswer {
		err = errors.New("the answer is too large")
	}
	if err != nil {
		return nil, err
	}
	return &answer{status: resp.StatusCode, header: resp.Header, body: b, instance: resp.Header.Get(InstanceHeader)}, nil
}

// problem returns the problem that an answer is, nil if it is none.
func (a *answer) problem() error {
	if a.status < 300 || a.status == http.StatusNotModified {
		return nil
	}
	p := &sbi.ProblemDetails{}
	if json.Unmarshal(a.body, p) != nil {
		p = &sbi.ProblemDetails{}
	}
	p.Status = a.status
	return p
}

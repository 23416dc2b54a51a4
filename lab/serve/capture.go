package serve

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/machineservice"
	"github.com/weft-sdn/weft/lab"
)

const (
	mostOctets  = 64 << 20 // of a capture
	mostBlock   = 1 << 20  // of pcapng
	longFilter  = 4 << 10
	sendTimeout = 30 * time.Second // for a client to take what there is
	// firstTimeout is how long a capture may take to begin, on another machine, too.
	firstTimeout = 30 * time.Second
)

// captureRequest reads the fields of a request to capture.
func captureRequest(r *http.Request, fields map[string]string) (*api.CaptureLabRequest, error) {
	if err := r.ParseForm(); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	req := &api.CaptureLabRequest{Lab: fields["lab"], Node: r.Form.Get("node"), Filter: r.Form.Get("filter")}
	number := func(name string, most uint64) (n uint64, err error) {
		text := r.Form.Get(name)
		if text == "" {
			return 0, nil
		}
		if _, err = fmt.Sscanf(text, "%d", &n); err != nil || n > most || fmt.Sprint(n) != text {
			return 0, api.Errorf(codes.InvalidArgument, "%s: %q is not allowed; allowed: a number up to %d", name, text, most)
		}
		return n, nil
	}
	port, err := number("port", math.MaxUint16)
	if err != nil {
		return nil, err
	}
	if req.Octets, err = number("octets", mostOctets); err != nil {
		return nil, err
	}
	req.Port = uint32(port)
	if len(req.GetFilter()) > longFilter {
		return nil, api.Errorf(codes.InvalidArgument, "the filter has %d octets; allowed: at most %d", len(req.GetFilter()), longFilter)
	}
	if strings.ContainsRune(req.GetFilter(), 0) {
		return nil, api.Errorf(codes.InvalidArgument, "the filter has a zero byte")
	}
	return req, nil
}

// capture answers with what passes interfaces.
func (s *server) capture(w http.ResponseWriter, r *http.Request, fields map[string]string) {
	if err := s.doCapture(w, r, fields); err != nil {
		machineservice.Refuse(w, err)
	}
}

// doCapture returns an error if it has not answered.
func (s *server) doCapture(w http.ResponseWriter, r *http.Request, fields map[string]string) (err error) {
	if err := s.o.allow(AllowCapture); err != nil {
		return err
	}
	req, err := captureRequest(r, fields)
	if err != nil {
		return err
	}
	l, err := s.running(req.GetLab())
	if err != nil {
		return err
	}
	ctx, leave, err := enter(r.Context(), s.places.captures)
	if err != nil {
		return err
	}
	begun := false
	defer func() {
		if why := leave(err); !begun { // else all that can be said now is the end
			err = why
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	what := lab.Capture{Node: req.GetNode(), Port: uint16(req.GetPort()), Filter: req.GetFilter()}
	c, err := s.startCapture(ctx, l, what)
	if err != nil {
		return err
	}
	defer c.wait()
	defer cancel()
	late := time.AfterFunc(firstTimeout, cancel)
	first, err := readBlock(c.out) // it comes once the interface is open and the filter understood
	if late.Stop(); err != nil {
		cancel()
		c.wait()
		return api.Errorf(codes.InvalidArgument, "capture at %s: %s", at(l, what.Node), cmp.Or(lab.CaptureFault(what, c.said.String()), err.Error()))
	}
	w.Header().Set("Content-Type", "application/x-pcapng")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	begun = true
	left := req.GetOctets()
	if left == 0 {
		left = mostOctets
	}
	to := http.NewResponseController(w)
	for block := first; uint64(len(block)) <= left; {
		left -= uint64(len(block))
		if to.SetWriteDeadline(time.Now().Add(sendTimeout)) != nil {
			return nil
		}
		if _, err := w.Write(block); err != nil {
			return nil //nolint:nilerr // the client has gone
		}
		if c.out.Buffered() == 0 && to.Flush() != nil {
			return nil
		}
		if block, err = readBlock(c.out); err != nil {
			return nil //nolint:nilerr // the node has gone; what there is is whole
		}
	}
	return nil
}

// capturing is a program that captures.
type capturing struct {
	cmd  *exec.Cmd
	out  *bufio.Reader
	in   io.WriteCloser
	said bounded
	done bool
}

func (s *server) startCapture(ctx context.Context, l running, what lab.Capture) (*capturing, error) {
	c := &capturing{cmd: exec.CommandContext(ctx, lab.CaptureProgram)}
	c.cmd.Env = append(os.Environ(), s.o.mark())
	c.cmd.Stderr = &c.said
	c.cmd.WaitDelay = time.Second
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil { // a capture on another machine ends with it
		return nil, err
	}
	c.out = bufio.NewReaderSize(out, 64<<10)
	err = l.StartCapture(c.cmd, what)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, api.Errorf(codes.FailedPrecondition, "%w", err)
	case err != nil:
		return nil, api.Errorf(codes.NotFound, "%w", err)
	}
	return c, nil
}

// wait waits until the program has ended.
func (c *capturing) wait() {
	if !c.done {
		_ = c.cmd.Wait() // it is killed
		c.done = true
	}
}

// bounded is the beginning of what is written to it.
type bounded struct{ bytes.Buffer }

// Write takes what there is room for (io.Writer).
func (b *bounded) Write(p []byte) (int, error) {
	if room := 4<<10 - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// readBlock reads a block of pcapng (draft-ietf-opsawg-pcapng, section 3.1) in the
// machine's order of octets.
func readBlock(r *bufio.Reader) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.NativeEndian.Uint32(head[4:])
	if n < 12 || n > mostBlock || n%4 != 0 {
		return nil, errors.New("the capture is not in the format pcapng")
	}
	block := make([]byte, n)
	copy(block, head[:])
	_, err := io.ReadFull(r, block[len(head):])
	return block, err
}

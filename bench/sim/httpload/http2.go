package httpload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// What the client grants a server, and until the server says otherwise, has
// itself (RFC 9113, 6.5.2).
const (
	window        = 1<<31 - 1
	renewAt       = 1 << 30 // octets after which the connection's window is renewed
	initialWindow = 65_535
	mostAnswered  = 1 << 20 // octets of the header of an answer
)

// http2Wire is HTTP/2, as much of it as a client needs that asks the same again
// and again.
type http2Wire struct {
	name   string // of the instance's header, in lower case
	fields []hpack.HeaderField
	body   []byte

	// Of who sends; the conn's mutex guards them.
	w       *bufio.Writer
	out     *http2.Framer
	encoder *hpack.Encoder
	block   bytes.Buffer
	next    uint32
	open    map[uint32]*stream
	granted int // octets that the server takes on the connection
	streams int // that the server takes at once
	each    int // octets that the server takes on a stream
	ending  bool

	// Of who reads.
	r       *bufio.Reader
	in      *http2.Framer
	decoder *hpack.Decoder
	current *stream
	header  int  // octets of the header that is being read
	last    bool // nothing follows that header
	taken   int  // octets since the window was renewed
}

// stream is a request that is not answered.
type stream struct {
	request
	reply
}

func newHTTP2(raw net.Conn, c *conn) (*http2Wire, error) {
	l := c.load
	h := &http2Wire{
		name: strings.ToLower(l.InstanceHeader), body: l.Body, next: 1, open: map[uint32]*stream{},
		granted: initialWindow, streams: mostStreams, each: initialWindow,
		r: bufio.NewReaderSize(raw, 64<<10), w: bufio.NewWriterSize(raw, 32<<10),
	}
	add := func(name, value string) {
		h.fields = append(h.fields, hpack.HeaderField{Name: name, Value: value})
	}
	add(":method", l.Method)
	add(":scheme", c.target.Scheme)
	add(":authority", c.target.Host)
	add(":path", c.target.RequestURI())
	for name, values := range l.Header {
		for _, v := range values {
			add(strings.ToLower(name), v)
		}
	}
	if len(h.body) > 0 {
		add("content-length", strconv.Itoa(len(h.body)))
	}
	h.encoder = hpack.NewEncoder(&h.block)
	h.decoder = hpack.NewDecoder(4096, h.field)
	h.out, h.in = http2.NewFramer(h.w, nil), http2.NewFramer(nil, h.r)
	h.in.SetReuseFrames()
	_, err := h.w.WriteString(http2.ClientPreface)
	return h, errors.Join(err,
		h.out.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}),
		h.out.WriteWindowUpdate(0, window-initialWindow), h.w.Flush())
}

func (h *http2Wire) room() int {
	if h.ending || h.next >= 1<<30 || len(h.body) > min(h.granted, h.each) {
		return 0
	}
	return max(0, h.streams-len(h.open))
}

func (h *http2Wire) send(r request) error {
	h.block.Reset()
	for _, f := range h.fields {
		_ = h.encoder.WriteField(f) // to memory
	}
	id := h.next
	h.next += 2
	h.open[id] = &stream{request: r}
	err := h.out.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: h.block.Bytes(), EndHeaders: true, EndStream: len(h.body) == 0})
	if err == nil && len(h.body) > 0 {
		h.granted -= len(h.body)
		err = h.out.WriteData(id, true, h.body)
	}
	if err != nil {
		delete(h.open, id)
	}
	return err
}

func (h *http2Wire) flush() error { return h.w.Flush() }

func (h *http2Wire) read(mu sync.Locker, done func(request, reply)) error {
	for {
		f, err := h.in.ReadFrame() // what is in the buffer, or what comes
		if err != nil {
			return err
		}
		mu.Lock()
		err = h.frame(f, done)
		mu.Unlock()
		if err != nil || h.r.Buffered() < 9 { // what comes next is not there, or not whole
			return err
		}
	}
}

// frame takes a frame; the conn's mutex is held.
func (h *http2Wire) frame(f http2.Frame, done func(request, reply)) error {
	id := f.Header().StreamID
	ends := false
	switch f := f.(type) {
	case *http2.HeadersFrame:
		h.current, h.header, h.last = h.open[id], 0, f.StreamEnded()
		if err := h.fragment(f.HeaderBlockFragment(), f.HeadersEnded()); err != nil {
			return err
		}
		ends = h.last && f.HeadersEnded()
	case *http2.ContinuationFrame:
		if err := h.fragment(f.HeaderBlockFragment(), f.HeadersEnded()); err != nil {
			return err
		}
		ends = h.last && f.HeadersEnded()
	case *http2.DataFrame:
		if s := h.open[id]; s != nil {
			s.octets += len(f.Data())
		}
		if h.taken += int(f.Length); h.taken >= renewAt {
			if err := errors.Join(h.out.WriteWindowUpdate(0, uint32(h.taken)), h.w.Flush()); err != nil {
				return err
			}
			h.taken = 0
		}
		ends = f.StreamEnded()
	case *http2.RSTStreamFrame:
		if s := h.open[id]; s != nil {
			delete(h.open, id)
			done(s.request, reply{status: statusReset})
		}
	case *http2.SettingsFrame:
		return h.settings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			return errors.Join(h.out.WritePing(true, f.Data), h.w.Flush())
		}
	case *http2.WindowUpdateFrame:
		if id == 0 {
			h.granted += int(f.Increment)
		}
	case *http2.GoAwayFrame:
		h.ending = true
		if f.ErrCode != http2.ErrCodeNo {
			return fmt.Errorf("GOAWAY: %v", f.ErrCode)
		}
	}
	if s := h.open[id]; s != nil && ends {
		delete(h.open, id)
		done(s.request, s.reply)
	}
	if h.ending && len(h.open) == 0 {
		return errFinished
	}
	return nil
}

// statusReset stands for the status of a request that the server has reset.
const statusReset = 599

// fragment decodes a part of a header.
func (h *http2Wire) fragment(b []byte, last bool) error {
	if h.header += len(b); h.header > mostAnswered {
		return errors.New("the header of an answer is too large")
	}
	if _, err := h.decoder.Write(b); err != nil {
		return err
	}
	if last {
		return h.decoder.Close()
	}
	return nil
}

// field takes a field of an answer's header.
func (h *http2Wire) field(f hpack.HeaderField) {
	switch {
	case h.current == nil:
	case f.Name == ":status":
		h.current.status, _ = strconv.Atoi(f.Value) // 0 is none that a server means
	case f.Name == h.name && h.name != "":
		h.current.instance = f.Value
	}
}

func (h *http2Wire) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	_ = f.ForeachSetting(func(s http2.Setting) error {
		switch s.ID {
		case http2.SettingMaxConcurrentStreams:
			h.streams = int(min(s.Val, mostStreams))
		case http2.SettingInitialWindowSize:
			h.each = int(s.Val)
		case http2.SettingHeaderTableSize:
			h.encoder.SetMaxDynamicTableSizeLimit(s.Val)
		}
		return nil
	})
	return errors.Join(h.out.WriteSettingsAck(), h.w.Flush())
}

func (h *http2Wire) expire(before time.Time) (late []request, err error) {
	for id, s := range h.open {
		if !s.sent.After(before) {
			late = append(late, s.request)
			delete(h.open, id)
			err = errors.Join(err, h.out.WriteRSTStream(id, http2.ErrCodeCancel))
		}
	}
	if late != nil {
		err = errors.Join(err, h.w.Flush())
	}
	return late, err
}

func (h *http2Wire) left() []request {
	var all []request
	for id, s := range h.open {
		all = append(all, s.request)
		delete(h.open, id)
	}
	return all
}

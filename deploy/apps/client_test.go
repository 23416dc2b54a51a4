package apps

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
)

// decide is what an app of the tests answers; nil is no answer.
type decide func(*api.Packets) *api.Decisions

// each answers every packet with the same decision.
func each(d *api.Decision) decide {
	return func(p *api.Packets) *api.Decisions {
		answer := &api.Decisions{Id: p.GetId()}
		for range p.GetPackets() {
			answer.Decisions = append(answer.Decisions, d)
		}
		return answer
	}
}

// client is an attached app of the tests.
type client struct {
	welcome *api.Welcome
	leave   func()
	ended   chan error // why the connection has ended; REST has none
}

// attacher attaches an app over one transport.
type attacher func(t testing.TB, w *world, h *api.Hello, d decide) (*client, error)

// transports are all that there are.
func transports() map[string]attacher {
	return map[string]attacher{"grpc": attachGRPC, "ws": attachWS, "rest": attachREST}
}

// overAll runs a test over every transport.
func overAll(t *testing.T, test func(t *testing.T, attach attacher)) {
	for name, attach := range transports() {
		t.Run(name, func(t *testing.T) { test(t, attach) })
	}
}

func dial(t testing.TB, w *world, config *tls.Config) *grpc.ClientConn {
	t.Helper()
	creds := insecure.NewCredentials()
	if config != nil {
		creds = credentials.NewTLS(config)
	}
	conn, err := grpc.NewClient(w.address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func attachGRPC(t testing.TB, w *world, h *api.Hello, d decide) (*client, error) {
	return attachStream(dial(t, w, nil), h, d)
}

func attachStream(conn *grpc.ClientConn, h *api.Hello, d decide) (*client, error) {
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := api.NewAppsClient(conn).Attach(ctx)
	if err == nil {
		err = stream.Send(&api.FromApp{Message: &api.FromApp_Hello{Hello: h}})
	}
	var first *api.ToApp
	if err == nil || errors.Is(err, io.EOF) { // the stream has ended: Recv says why
		first, err = stream.Recv()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	c := &client{welcome: first.GetWelcome(), leave: cancel, ended: make(chan error, 1)}
	go func() {
		for {
			m, err := stream.Recv()
			if err != nil {
				c.ended <- err
				return
			}
			if answer := d(m.GetPackets()); answer != nil && m.GetPackets().GetId() != 0 {
				_ = stream.Send(&api.FromApp{Message: &api.FromApp_Decisions{Decisions: answer}})
			}
		}
	}()
	return c, nil
}

func attachWS(t testing.TB, w *world, h *api.Hello, d decide) (*client, error) {
	conn, err := openWS(t, w)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	write := func(format string, body []byte) {
		_ = conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, format, body)) // the reader says why
	}
	hello, _ := protojson.Marshal(h)
	write(`{"hello":%s}`, hello)
	read := func() (*api.ToApp, error) {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(string(text), `{"error":`) {
			return nil, fmt.Errorf("%s", text)
		}
		m := &api.ToApp{}
		return m, protojson.Unmarshal(text, m)
	}
	first, err := read()
	if err != nil {
		return nil, err
	}
	c := &client{welcome: first.GetWelcome(), leave: func() { conn.Close(websocket.StatusNormalClosure, "") }, ended: make(chan error, 1)}
	go func() {
		for {
			m, err := read()
			if err != nil {
				c.ended <- err
				return
			}
			if answer := d(m.GetPackets()); answer != nil && m.GetPackets().GetId() != 0 {
				body, _ := protojson.Marshal(answer)
				write(`{"decisions":%s}`, body)
			}
		}
	}()
	return c, nil
}

func openWS(t testing.TB, w *world) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+w.address+"/v1/apps", nil)
	if err == nil {
		conn.SetReadLimit(16 << 20)
		t.Cleanup(func() { conn.CloseNow() })
	}
	return conn, err
}

func attachREST(t testing.TB, w *world, h *api.Hello, d decide) (*client, error) {
	app := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p := &api.Packets{}
		if err := protojson.Unmarshal(body, p); err != nil {
			t.Errorf("the app is sent %.200q: %v", body, err)
		}
		answer := d(p)
		if answer == nil {
			<-r.Context().Done()
			return
		}
		text, _ := protojson.Marshal(answer)
		rw.Write(text)
	}))
	t.Cleanup(app.Close)
	named := &api.Hello{Name: h.GetName(), Kind: h.GetKind(), Filter: h.GetFilter(), Url: app.URL}
	body, _ := protojson.Marshal(named)
	welcome := &api.Welcome{}
	if err := request(w, "POST", "/v1/apps", body, welcome); err != nil {
		return nil, err
	}
	return &client{welcome: welcome, leave: func() {
		if err := request(w, "DELETE", "/v1/apps/"+h.GetName(), nil, &api.App{}); err != nil {
			t.Error(err)
		}
	}}, nil
}

// request makes a request over HTTP.
func request(w *world, method, path string, body []byte, into proto.Message) error {
	req, err := http.NewRequest(method, "http://"+w.address+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		var f failure
		if err := json.Unmarshal(text, &f); err != nil || f.Code == 0 || f.Message == "" {
			return fmt.Errorf("status %d with %q, which is no error in JSON", resp.StatusCode, text)
		}
		return fmt.Errorf("%d: %s", resp.StatusCode, f.Message)
	}
	return protojson.Unmarshal(text, into)
}

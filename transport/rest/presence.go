package rest

import (
	"net/http"
	"time"

	"github.com/weft-sdn/weft/transport"
)

// keepAliveAfter is how often a ping keeps the peer from closing the first
// wire.
const keepAliveAfter = time.Minute

// presence reads the first wire of a connection, which carries nothing but
// pings: when it ends, the peer has gone.
func (c *conn) presence() {
	defer close(c.gone)
	var err error
	for err == nil {
		if _, err = c.first.r.Peek(1); err != nil { // wait, for an answer or the end
			break
		}
		if _, _, err = c.first.answer(); err == nil {
			c.heard.Add(1)
		}
	}
	c.fail(transport.Errorf(transport.Unavailable, "the connection to %s is lost: %v", c.address, err))
}

// keepAlive sends a ping by the first wire; one at a time calls it.
func (c *conn) keepAlive() {
	ping := c.first.appendRequest(nil, http.MethodGet, PingPath, "", 0, 0)
	_ = c.first.conn.SetWriteDeadline(time.Now().Add(c.beat.Dead)) // if it fails, so will writing
	if _, err := c.first.conn.Write(ping); err != nil {
		_ = c.first.conn.Close() // presence sees it
	}
}

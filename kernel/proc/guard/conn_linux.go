package guard

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Conn is one end of the socket between host and guard. Any number of goroutines
// may Send; one at a time may Receive.
type Conn struct {
	socket  *net.UnixConn
	sending sync.Mutex

	buffer   []byte // received and not yet taken
	chunk    []byte
	controls []byte
	files    []int // descriptors received and not yet taken, oldest first
}

// maxFiles is how many descriptors come with one message: stdin, stdout, stderr.
const maxFiles = 3

// NewConn takes over a stream socket; file is closed.
func NewConn(file *os.File) (*Conn, error) {
	defer file.Close()
	socket, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	stream, ok := socket.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("not a unix socket"), socket.Close())
	}
	return &Conn{
		socket:   stream,
		chunk:    make([]byte, 64<<10),
		controls: make([]byte, unix.CmsgSpace(maxFiles*4)),
	}, nil
}

// Send writes one message; the descriptors stay the caller's.
func (c *Conn) Send(m *Message, files ...int) error {
	m.Files = byte(len(files))
	b, err := m.encode()
	if err != nil {
		return err
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	if len(files) == 0 {
		_, err := c.socket.Write(b)
		return err
	}
	// The descriptors ride on the first byte that is written; the rest of a message
	// larger than the socket's buffer follows without them.
	n, _, err := c.socket.WriteMsgUnix(b, unix.UnixRights(files...), nil)
	if err != nil {
		return err
	}
	if n < len(b) {
		_, err = c.socket.Write(b[n:])
	}
	return err
}

// Receive waits for the next message; the descriptors become the caller's, close
// on exec. Its error is final; io.EOF says that the other side is gone.
func (c *Conn) Receive() (*Message, []int, error) {
	for {
		if m, files, err := c.next(); m != nil || err != nil {
			return m, files, err
		}
		n, controls, _, _, err := c.socket.ReadMsgUnix(c.chunk, c.controls)
		if controls > 0 {
			if err := c.collect(c.controls[:controls]); err != nil {
				return nil, nil, err
			}
		}
		if err != nil {
			return nil, nil, err
		}
		if n == 0 {
			return nil, nil, io.EOF
		}
		c.buffer = append(c.buffer, c.chunk[:n]...)
	}
}

// next takes one whole message off the buffer; nil when there is none yet.
func (c *Conn) next() (*Message, []int, error) {
	if len(c.buffer) < 4 {
		return nil, nil, nil
	}
	length := int(binary.BigEndian.Uint32(c.buffer))
	if length > MaxMessageBytes {
		return nil, nil, errMalformed
	}
	if len(c.buffer) < 4+length {
		return nil, nil, nil
	}
	m, err := decode(c.buffer[4 : 4+length])
	if err != nil {
		return nil, nil, err
	}
	// The kernel never joins the descriptors of two writes, and it hands them out no
	// later than the bytes that they ride on, so the oldest belong to this message.
	count := int(m.Files)
	if count > len(c.files) {
		return nil, nil, errMalformed
	}
	files := append([]int(nil), c.files[:count]...)
	c.files = append(c.files[:0], c.files[count:]...)
	c.buffer = append(c.buffer[:0], c.buffer[4+length:]...)
	return m, files, nil
}

func (c *Conn) collect(controls []byte) error {
	messages, err := unix.ParseSocketControlMessage(controls)
	if err != nil {
		return err
	}
	for i := range messages {
		files, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return err
		}
		c.files = append(c.files, files...)
	}
	return nil
}

// CloseWrite tells the other side that nothing more comes; what it still says can
// be received.
func (c *Conn) CloseWrite() error { return c.socket.CloseWrite() }

// Close closes the socket and the descriptors that nobody took.
func (c *Conn) Close() error {
	for _, fd := range c.files {
		_ = unix.Close(fd)
	}
	c.files = nil
	return c.socket.Close()
}

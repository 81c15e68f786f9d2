// Package storage stands for the client of Google Cloud Storage, in which a Temporal server can archive histories. Its
// NewClient refuses. It has those types and methods that the server calls.
package storage

import (
	"context"
	"errors"

	"google.golang.org/api/option"
)

// ScopeFullControl is a name that the server needs.
const ScopeFullControl = "https://www.googleapis.com/auth/devstorage.full_control"

var errAbsent = errors.New("this server archives nothing in Google Cloud Storage")

// Client is of no use.
type Client struct{}

// NewClient refuses.
func NewClient(context.Context, ...option.ClientOption) (*Client, error) { return nil, errAbsent }

// Bucket returns a bucket that refuses everything.
func (*Client) Bucket(string) *BucketHandle { return &BucketHandle{} }

// BucketHandle refuses everything.
type BucketHandle struct{}

// BucketAttrs is empty.
type BucketAttrs struct{}

// Query says which objects the server wants.
type Query struct{ Prefix string }

// Attrs refuses.
func (*BucketHandle) Attrs(context.Context) (*BucketAttrs, error) { return nil, errAbsent }

// Object returns an object that refuses everything.
func (*BucketHandle) Object(string) *ObjectHandle { return &ObjectHandle{} }

// Objects returns an iterator that refuses.
func (*BucketHandle) Objects(context.Context, *Query) *ObjectIterator { return &ObjectIterator{} }

// ObjectIterator refuses.
type ObjectIterator struct{}

// Next refuses.
func (*ObjectIterator) Next() (*ObjectAttrs, error) { return nil, errAbsent }

// ObjectHandle refuses everything.
type ObjectHandle struct{}

// ObjectAttrs has what the server reads.
type ObjectAttrs struct{ Name string }

// Attrs refuses.
func (*ObjectHandle) Attrs(context.Context) (*ObjectAttrs, error) { return nil, errAbsent }

// NewReader refuses.
func (*ObjectHandle) NewReader(context.Context) (*Reader, error) { return nil, errAbsent }

// NewWriter returns a writer that refuses.
func (*ObjectHandle) NewWriter(context.Context) *Writer { return &Writer{} }

// Reader refuses.
type Reader struct{}

func (*Reader) Read([]byte) (int, error) { return 0, errAbsent }

// Close does nothing.
func (*Reader) Close() error { return nil }

// Writer refuses.
type Writer struct{}

func (*Writer) Write([]byte) (int, error) { return 0, errAbsent }

// Close refuses.
func (*Writer) Close() error { return errAbsent }

// CloseWithError does nothing.
func (*Writer) CloseWithError(error) error { return nil }

-- TPA over UDP for Wireshark and tshark: docs/wire.md has the format.
--
--   tshark -X lua_script:share/wireshark/meshpace_tpa.lua -r capture.pcapng
--   or copy this file to Wireshark's folder of personal plugins (Help, About, Folders)
--
-- What opens a connection is known by its first bytes, and from then on everything between the two ports is TPA. A capture that
-- begins later needs "Decode As", or the ports among the preferences. Encrypted datagrams show their tag and number; `meshpace
-- decrypt` makes a capture of what is inside.

local tpa = Proto("meshpace_tpa", "TPA over UDP (meshpace)")

local KINDS = {[0] = "request", [1] = "challenge", [2] = "acceptance", [3] = "stray", [4] = "refusal"}
local PROTECTIONS = {[0] = "none", [1] = "Noise NN", [2] = "Noise NNpsk0", [3] = "Noise IK"}
local CIPHERS = {[0] = "ChaCha20-Poly1305", [1] = "AES-256-GCM"}
local VERSION = 3
local OPENING, STRAY = 62, 20
local TAG, HEADER = 8, 12
-- A quiet train's segment.
local TRAIN = 38
-- Around an encrypted segment: tag, number, authentication.
local SEALED = 16 + 16

local f = tpa.fields
f.tag = ProtoField.uint64("meshpace_tpa.tag", "Tag of the receiver", base.HEX)
f.number = ProtoField.uint64("meshpace_tpa.number", "Number in its direction")
f.sealed = ProtoField.bytes("meshpace_tpa.sealed", "Encrypted segment")
f.authentication = ProtoField.bytes("meshpace_tpa.authentication", "Authentication")
f.version = ProtoField.uint8("meshpace_tpa.version", "Version")
f.kind = ProtoField.uint8("meshpace_tpa.kind", "Kind", base.DEC, KINDS)
f.protection = ProtoField.uint8("meshpace_tpa.protection", "Protection", base.DEC, PROTECTIONS, 0x0f)
f.offers_aes = ProtoField.bool("meshpace_tpa.offers_aes", "Offers AES-256-GCM", 8, nil, 0x10)
f.cipher = ProtoField.uint8("meshpace_tpa.cipher", "Cipher", base.DEC, CIPHERS, 0x20)
f.ack_every = ProtoField.uint8("meshpace_tpa.ack_every", "Segments that share an ACK")
f.opener = ProtoField.uint64("meshpace_tpa.opener", "Tag of who opens", base.HEX)
f.acceptor = ProtoField.uint64("meshpace_tpa.acceptor", "Tag of who accepts", base.HEX)
f.cwnd_max = ProtoField.uint8("meshpace_tpa.cwnd_max", "cwnd_max")
f.block_segments = ProtoField.uint8("meshpace_tpa.block_segments", "Segments in a block")
f.segment = ProtoField.uint16("meshpace_tpa.segment", "Payload of a full segment")
f.cookie = ProtoField.bytes("meshpace_tpa.cookie", "Cookie")
f.noise = ProtoField.bytes("meshpace_tpa.noise", "Noise's message")
f.padding = ProtoField.bytes("meshpace_tpa.padding", "Padding")
f.block = ProtoField.uint16("meshpace_tpa.block", "BlockSeqNumber", base.DEC, nil, 0xfff0)
f.places = ProtoField.uint16("meshpace_tpa.places", "BitmapData", base.HEX, nil, 0x0fff)
f.tx = ProtoField.uint8("meshpace_tpa.tx", "TxSeqNumber")
f.ack_block = ProtoField.uint16("meshpace_tpa.ack_block", "AckBlockSeqNumber", base.DEC, nil, 0xfff0)
f.ack_places = ProtoField.uint16("meshpace_tpa.ack_places", "BitmapAck", base.HEX, nil, 0x0fff)
f.ack_tx = ProtoField.uint8("meshpace_tpa.ack_tx", "AckTxSeqNumber")
f.ack = ProtoField.bool("meshpace_tpa.flags.ack", "ACK", 8, nil, 0x80)
f.rst = ProtoField.bool("meshpace_tpa.flags.rst", "RST", 8, nil, 0x40)
f.syn = ProtoField.bool("meshpace_tpa.flags.syn", "SYN", 8, nil, 0x20)
f.fin = ProtoField.bool("meshpace_tpa.flags.fin", "FIN", 8, nil, 0x10)
f.congested = ProtoField.bool("meshpace_tpa.congested", "txStat: congested", 8, nil, 0x08)
f.window = ProtoField.uint16("meshpace_tpa.window", "WinSize", base.DEC, nil, 0x07f8)
f.last = ProtoField.bool("meshpace_tpa.last", "Last of its block", 8, nil, 0x04)
f.trains = ProtoField.bool("meshpace_tpa.trains", "Carries quiet trains", 8, nil, 0x40)
f.train_ack = ProtoField.bool("meshpace_tpa.train.flags.ack", "ACK", 8, nil, 0x10)
f.train_tail = ProtoField.bool("meshpace_tpa.train.flags.tail", "TAIL", 8, nil, 0x08)
f.train_rst = ProtoField.bool("meshpace_tpa.train.flags.rst", "RST", 8, nil, 0x04)
f.train_syn = ProtoField.bool("meshpace_tpa.train.flags.syn", "SYN", 8, nil, 0x02)
f.train_fin = ProtoField.bool("meshpace_tpa.train.flags.fin", "FIN", 8, nil, 0x01)
f.train_wait = ProtoField.uint8("meshpace_tpa.train.wait", "Wait of the ACK, 4 ms")
f.train_window = ProtoField.uint16("meshpace_tpa.train.window", "Window, segments")
f.train_seq = ProtoField.uint64("meshpace_tpa.train.seq", "Offset")
f.train_next = ProtoField.uint64("meshpace_tpa.train.ack", "Offset expected next")
f.train_ts = ProtoField.uint32("meshpace_tpa.train.ts_val", "Clock, us")
f.train_echo = ProtoField.uint32("meshpace_tpa.train.ts_ecr", "Clock of the newest segment, us")
f.train_beyond = ProtoField.uint32("meshpace_tpa.train.beyond", "Beyond a gap", base.HEX)
f.train_segments = ProtoField.uint8("meshpace_tpa.train.segments", "Segments since the last ACK")
f.train_marked = ProtoField.uint8("meshpace_tpa.train.marked", "Marked")
f.train_mean = ProtoField.int16("meshpace_tpa.train.mean", "Mean delay less the newest, 32 us")
f.train_least = ProtoField.int16("meshpace_tpa.train.least", "Least delay less the newest, 32 us")
f.payload = ProtoField.bytes("meshpace_tpa.payload", "Payload")
f.length = ProtoField.uint16("meshpace_tpa.length", "Bytes of payload")

tpa.prefs.ports = Pref.range("UDP ports", "7700,7800", "Ports whose datagrams are TPA whatever came before", 65535)

-- Tags of connections that carry quiet trains.
local carries_trains = {}

function tpa.init()
  carries_trains = {}
end

local function tag_of(buffer, at)
  return buffer(at, TAG):bytes():tohex()
end

-- The paper's header of 12 bytes. Returns what the list says of it.
local function header(buffer, tree)
  tree:add(f.block, buffer(0, 2))
  tree:add(f.places, buffer(1, 2))
  tree:add(f.tx, buffer(3, 1))
  tree:add(f.ack_block, buffer(4, 2))
  tree:add(f.ack_places, buffer(5, 2))
  tree:add(f.ack_tx, buffer(7, 1))
  local flags = buffer(10, 1)
  for _, field in ipairs({f.ack, f.rst, f.syn, f.fin, f.congested}) do tree:add(field, flags) end
  tree:add(f.window, buffer(10, 2))
  tree:add(f.last, buffer(11, 1))
  local names = {}
  for bit, name in pairs({[7] = "ACK", [6] = "RST", [5] = "SYN", [4] = "FIN"}) do
    if flags:bitfield(7 - bit, 1) == 1 then names[#names + 1] = name end
  end
  table.sort(names)
  local places = buffer(1, 2):bitfield(4, 12)
  local text = table.concat(names, ",")
  if places ~= 0 then text = text .. string.format(" block %d place 0x%03x", buffer(0, 2):bitfield(0, 12), places) end
  return text .. string.format(" acks %d 0x%03x", buffer(4, 2):bitfield(0, 12), buffer(5, 2):bitfield(4, 12))
end

local function zeros(buffer, at, length)
  for i = at, at + length - 1 do
    if buffer(i, 1):uint() ~= 0 then return false end
  end
  return true
end

local function is_opening(buffer)
  if buffer:len() < STRAY or not zeros(buffer, 0, TAG) or buffer(8, 1):uint() ~= VERSION then return false end
  local kind = buffer(9, 1):uint()
  if kind == 3 then return buffer:len() == STRAY end
  return KINDS[kind] ~= nil and buffer:len() >= OPENING
end

-- A segment whose unused bits are zero. An encrypted one looks like that once in 2^18 times.
local function is_plain(buffer)
  if buffer:len() < TAG + HEADER then return false end
  return zeros(buffer, TAG + 8, 2) and buffer(TAG + 11, 1):bitfield(6, 2) == 0
end

local function opening(buffer, tree)
  tree:add(f.tag, buffer(0, 8))
  tree:add(f.version, buffer(8, 1))
  tree:add(f.kind, buffer(9, 1))
  local kind = buffer(9, 1):uint()
  if kind == 3 then
    tree:add(f.opener, buffer(12, 8))
    return "stray: nobody knows tag 0x" .. buffer(12, 8):bytes():tohex():lower()
  end
  tree:add(f.protection, buffer(10, 1))
  local protection = buffer(10, 1):bitfield(4, 4)
  if protection ~= 0 then
    tree:add(f.offers_aes, buffer(10, 1))
    tree:add(f.cipher, buffer(10, 1))
  end
  tree:add(f.trains, buffer(10, 1))
  if buffer(10, 1):bitfield(1, 1) == 1 then
    carries_trains[tag_of(buffer, 12)] = true
    if kind == 2 then carries_trains[tag_of(buffer, 20)] = true end
  end
  tree:add(f.ack_every, buffer(11, 1))
  tree:add(f.opener, buffer(12, 8))
  tree:add(f.acceptor, buffer(20, 8))
  tree:add(f.cwnd_max, buffer(28, 1))
  tree:add(f.block_segments, buffer(29, 1))
  tree:add(f.segment, buffer(30, 2))
  tree:add(f.cookie, buffer(32, 16))
  local text = KINDS[kind] .. ": " .. header(buffer(48, HEADER), tree)
  local rest = buffer:len() - OPENING
  local length = math.min(buffer(60, 2):uint(), rest)
  if length > 0 then tree:add(f.noise, buffer(OPENING, length)) end
  if rest > length then tree:add(f.padding, buffer(OPENING + length)) end
  text = text .. ", protection " .. (PROTECTIONS[protection] or "unknown")
  if protection ~= 0 then text = text .. ", " .. CIPHERS[buffer(10, 1):bitfield(2, 1)] end
  return text
end

local function plain(buffer, tree)
  tree:add(f.tag, buffer(0, TAG))
  local text = header(buffer(TAG, HEADER), tree)
  local length = buffer:len() - TAG - HEADER
  tree:add(f.length, length):set_generated()
  if length > 0 then
    tree:add(f.payload, buffer(TAG + HEADER))
    text = text .. " " .. length .. " bytes"
  end
  return text
end

-- A train's segment has some flag; the number of an encrypted one begins with a zero.
local function is_train(buffer)
  return buffer:len() >= TAG + TRAIN and carries_trains[tag_of(buffer, 0)] and buffer(TAG, 1):uint() ~= 0
end

local function train(buffer, tree)
  tree:add(f.tag, buffer(0, TAG))
  local header = buffer(TAG, TRAIN)
  for _, field in ipairs({f.train_ack, f.train_tail, f.train_rst, f.train_syn, f.train_fin}) do
    tree:add(field, header(0, 1))
  end
  tree:add(f.train_wait, header(1, 1))
  tree:add(f.train_window, header(2, 2))
  tree:add(f.train_seq, header(4, 8))
  tree:add(f.train_next, header(12, 8))
  tree:add(f.train_ts, header(20, 4))
  tree:add(f.train_echo, header(24, 4))
  tree:add(f.train_beyond, header(28, 4))
  tree:add(f.train_segments, header(32, 1))
  tree:add(f.train_marked, header(33, 1))
  tree:add(f.train_mean, header(34, 2))
  tree:add(f.train_least, header(36, 2))
  local length = buffer:len() - TAG - TRAIN
  tree:add(f.length, length):set_generated()
  if length > 0 then tree:add(f.payload, buffer(TAG + TRAIN)) end
  local tail = header(0, 1):bitfield(4, 1) == 1 and " TAIL" or ""
  return string.format("train: offset %s%s, expects %s, %d bytes", tostring(header(4, 8):uint64()), tail,
    tostring(header(12, 8):uint64()), length)
end

local function sealed(buffer, tree)
  tree:add(f.tag, buffer(0, 8))
  tree:add(f.number, buffer(8, 8))
  tree:add(f.sealed, buffer(16, buffer:len() - SEALED))
  tree:add(f.authentication, buffer(buffer:len() - 16))
  return "encrypted, number " .. tostring(buffer(8, 8):uint64())
end

-- Where the next datagram of the same connection begins: a host that captures what it sends sees several in one packet, before
-- they are cut.
local function next_at(buffer)
  local tag, all = buffer(0, TAG):bytes():tohex(), buffer:bytes():tohex()
  local from = 2 * (TAG + HEADER) + 1
  while true do
    local at = all:find(tag, from, true)
    if at == nil then return nil end
    if at % 2 == 1 then return (at - 1) / 2 end
    from = at + 1
  end
end

local function one(buffer, root)
  local tree = root:add(tpa, buffer)
  if is_opening(buffer) then return opening(buffer, tree) end
  if is_train(buffer) then return train(buffer, tree) end
  if is_plain(buffer) then return plain(buffer, tree) end
  if buffer:len() >= SEALED + HEADER then return sealed(buffer, tree) end
  return nil
end

function tpa.dissector(buffer, pinfo, root)
  if buffer:len() < STRAY then return 0 end
  local texts, whole = {}, buffer:len()
  local rest = buffer:range()
  while rest ~= nil do
    local at = nil
    if not zeros(rest, 0, TAG) then at = next_at(rest) end
    local text = one(at and rest(0, at) or rest, root)
    if text == nil then return 0 end
    texts[#texts + 1] = text
    rest = at and rest(at) or nil
  end
  pinfo.cols.protocol = "TPA"
  pinfo.cols.info = table.concat(texts, " | ")
  return whole
end

local function heuristic(buffer, pinfo, root)
  if not is_opening(buffer) then return false end
  pinfo.conversation = tpa
  tpa.dissector(buffer, pinfo, root)
  return true
end

tpa:register_heuristic("udp", heuristic)

local ports = DissectorTable.get("udp.port")
local registered = nil
function tpa.prefs_changed()
  if registered ~= nil then ports:remove(registered, tpa) end
  registered = tostring(tpa.prefs.ports)
  if registered ~= "" then ports:add(registered, tpa) end
end
registered = "7700,7800"
ports:add(registered, tpa)

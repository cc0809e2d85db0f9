//! The steps that no single command of the server takes, as scripts, which it runs atomically.
//!
//! Time is the server's, in microseconds. Numbers are written by `string.format`, since Lua writes long ones in
//! scientific notation; a double holds microseconds since 1970 exactly until the year 2255.

use std::sync::LazyLock;

use redis::Script;

/// Writes a blob whose version is known. The version is the first 8 bytes.
///
/// Keys: the blob. Arguments: the version, the new blob, its time in ms. Returns whether it was written.
pub static PUT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GETRANGE', KEYS[1], 0, 7) ~= ARGV[1] then return 0 end
        redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
        return 1",
    )
});

/// Removes a blob whose version is known.
///
/// Keys: the blob. Arguments: the version. Returns whether it was removed.
pub static REMOVE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GETRANGE', KEYS[1], 0, 7) ~= ARGV[1] then return 0 end
        return redis.call('DEL', KEYS[1])",
    )
});

/// Appends an entry to a log: a hash with the last id, the bytes and the fence, and a list of entries, whose ids are
/// consecutive. The first id of a log is the time.
///
/// Keys: the hash, the list. Arguments: the entry, most entries, most bytes, the time of the log in ms, the
/// fence, the channel. Returns the id; -1 if a higher fence was seen.
pub static APPEND: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local last, bytes, fence = unpack(redis.call('HMGET', KEYS[1], 'last', 'bytes', 'fence'))
        if tonumber(fence or 0) > tonumber(ARGV[5]) then return -1 end
        if not last then
            local time = redis.call('TIME')
            last, bytes = time[1] * 1000000 + time[2], 0
            redis.call('DEL', KEYS[2])
        end
        local id, most = last + 1, tonumber(ARGV[3])
        local count = redis.call('RPUSH', KEYS[2], ARGV[1])
        bytes = bytes + #ARGV[1]
        while count > tonumber(ARGV[2]) or bytes > most do
            bytes = bytes - #redis.call('LPOP', KEYS[2])
            count = count - 1
        end
        redis.call('HSET', KEYS[1], 'last', string.format('%.0f', id), 'bytes', string.format('%.0f', bytes),
            'fence', ARGV[5])
        redis.call('PEXPIRE', KEYS[1], ARGV[4])
        redis.call('PEXPIRE', KEYS[2], ARGV[4])
        redis.call('PUBLISH', ARGV[6], '')
        return id",
    )
});

/// Reads a page of a log.
///
/// Keys: the hash, the list. Arguments: the id before the first (empty for the oldest), most entries, most bytes.
/// Returns the last id (0 if there is no log), the id before the first entry, and the entries.
pub static READ: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local last = tonumber(redis.call('HGET', KEYS[1], 'last') or 0)
        if last == 0 then return {0, 0} end
        local count = redis.call('LLEN', KEYS[2])
        local gone = last - count
        local from = gone
        if ARGV[1] ~= '' then from = math.min(math.max(tonumber(ARGV[1]), gone), last) end
        local page, bytes, most = {last, from}, 0, tonumber(ARGV[2])
        local index = from - gone
        while index < count and #page - 2 < most do
            local step = math.min(64, most - (#page - 2))
            for _, entry in ipairs(redis.call('LRANGE', KEYS[2], index, index + step - 1)) do
                bytes = bytes + #entry
                if bytes > tonumber(ARGV[3]) and #page > 2 then return page end
                page[#page + 1] = entry
            end
            index = index + step
        end
        return page",
    )
});

/// Takes or renews a lease: a hash with the holder, the note, the end and the token. It outlives the lease by
/// an hour, so that the token rises even if the clock is set back meanwhile.
///
/// Keys: the hash. Arguments: the holder, the note, the time in ms. Returns 1 and the token, or 0, the note of the
/// holder and the time that is left, in µs.
pub static LEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local time = redis.call('TIME')
        local now = time[1] * 1000000 + time[2]
        local holder, note, ends, token = unpack(redis.call('HMGET', KEYS[1], 'holder', 'note', 'ends', 'token'))
        local left = tonumber(ends or 0) - now
        token = tonumber(token or 0)
        if left > 0 and holder ~= ARGV[1] then return {0, note, left} end
        if left <= 0 then token = math.max(now, token + 1) end
        redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'note', ARGV[2],
            'ends', string.format('%.0f', now + ARGV[3] * 1000), 'token', string.format('%.0f', token))
        redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ARGV[3] + 3600000))
        return {1, token}",
    )
});

/// Ends a lease.
///
/// Keys: the hash. Arguments: the holder. Returns whether it had the lease.
pub static RELEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local time = redis.call('TIME')
        local holder, ends = unpack(redis.call('HMGET', KEYS[1], 'holder', 'ends'))
        if holder ~= ARGV[1] or tonumber(ends or 0) <= time[1] * 1000000 + time[2] then return 0 end
        redis.call('HSET', KEYS[1], 'ends', '0', 'note', '')
        return 1",
    )
});

/// Takes tokens from a bucket: when it will be full, in µs since 2025. From that year on, a double is precise to a
/// hundredth of a microsecond or better for a century.
///
/// Keys: the bucket. Arguments: the interval in µs, the tokens, the burst. Returns 0, or the time in µs after
/// which there are enough.
pub static TAKE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local time = redis.call('TIME')
        local now = (time[1] - 1735689600) * 1000000 + time[2]
        local kept = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
        local empty = now + ARGV[1] * ARGV[3]
        local full = math.min(kept, empty) + ARGV[1] * ARGV[2]
        local missing = full - empty
        if missing > 0 then
            if kept <= empty then return math.ceil(missing) end
            full = empty
        end
        if full > now then
            redis.call('SET', KEYS[1], string.format('%.17g', full),
                'PX', string.format('%.0f', math.ceil((full - now) / 1000)))
        end
        return math.max(math.ceil(missing), 0)",
    )
});

/// Counts calls against a quota: how many there were, until its period is over.
///
/// Keys: the count. Arguments: the calls, the quota, the period in ms. Returns 0, or the time in µs after which the next
/// period begins.
pub static SPEND: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
        local spent = tonumber(redis.call('GET', KEYS[1]) or 0)
        if spent + ARGV[1] > tonumber(ARGV[2]) then return math.max(redis.call('PTTL', KEYS[1]), 1) * 1000 end
        if ARGV[1] == '0' then return 0 end
        redis.call('INCRBY', KEYS[1], ARGV[1])
        if spent == 0 then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
        return 0",
    )
});

package io.hawser.broker.rest;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Signature;
import java.security.interfaces.RSAPublicKey;
import java.util.Arrays;
import java.util.Base64;

/** A small OpenID Connect issuer on the loopback interface, with its description, its keys and signed tokens. */
final class TestIssuer implements AutoCloseable {
    /** The lifetime of a token, longer than any test. */
    static final long GOOD_FOR_S = 3600;

    private final HttpServer server;
    private final KeyPair keys;

    TestIssuer() {
        try {
            keys = newKeys();
            server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        serve("/.well-known/openid-configuration", "{\"issuer\":\"" + url() + "\",\"jwks_uri\":\"" + url()
            + "/keys\",\"token_endpoint\":\"" + url() + "/token\",\"authorization_endpoint\":\"" + url() + "/auth\"}");
        RSAPublicKey key = (RSAPublicKey) keys.getPublic();
        serve("/keys", "{\"keys\":[{\"kty\":\"RSA\",\"use\":\"sig\",\"alg\":\"RS256\",\"kid\":\"one\",\"n\":\""
            + number(key.getModulus()) + "\",\"e\":\"" + number(key.getPublicExponent()) + "\"}]}");
        server.start();
    }

    static KeyPair newKeys() {
        try {
            KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
            generator.initialize(2048);
            return generator.generateKeyPair();
        } catch (GeneralSecurityException e) {
            throw new AssertionError(e);
        }
    }

    private void serve(String path, String json) {
        byte[] answer = json.getBytes(StandardCharsets.UTF_8);
        server.createContext(path, exchange -> {
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(200, answer.length);
            try (var body = exchange.getResponseBody()) {
                body.write(answer);
            }
        });
    }

    String url() {
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    /** A token of this issuer for the audience {@code hawser}. */
    String token(String name, String... roles) {
        return sign(keys, "RS256", claims(url(), "hawser", GOOD_FOR_S, name, roles));
    }

    static String claims(String issuer, String audience, long seconds, String name, String... roles) {
        long now = System.currentTimeMillis() / 1000;
        return "{\"iss\":\"" + issuer + "\",\"aud\":\"" + audience + "\",\"sub\":\"7\",\"preferred_username\":\"" + name
            + "\",\"iat\":" + (now - 3600) + ",\"exp\":" + (now + seconds) + ",\"roles\":["
            + String.join(",", Arrays.stream(roles).map(r -> "\"" + r + "\"").toList()) + "]}";
    }

    KeyPair keys() {
        return keys;
    }

    static String sign(KeyPair keys, String algorithm, String claims) {
        String text = base64(("{\"alg\":\"" + algorithm + "\",\"typ\":\"JWT\",\"kid\":\"one\"}")
            .getBytes(StandardCharsets.UTF_8)) + "." + base64(claims.getBytes(StandardCharsets.UTF_8));
        if (algorithm.equals("none")) {
            return text + ".";
        }
        try {
            Signature signature = Signature.getInstance("SHA256withRSA");
            signature.initSign(keys.getPrivate());
            signature.update(text.getBytes(StandardCharsets.US_ASCII));
            return text + "." + base64(signature.sign());
        } catch (GeneralSecurityException e) {
            throw new AssertionError(e);
        }
    }

    private static String number(BigInteger number) {
        byte[] bytes = number.toByteArray();
        return base64(bytes[0] == 0 ? Arrays.copyOfRange(bytes, 1, bytes.length) : bytes);
    }

    private static String base64(byte[] bytes) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }

    @Override
    public void close() {
        server.stop(0);
    }
}
